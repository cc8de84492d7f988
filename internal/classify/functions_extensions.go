package classify

// extensionGroups are the functions of well-known PostgreSQL extensions: those
// of contrib and PostGIS from the extensions' own scripts, less what only an
// index or a type calls, and those of pgvector and TimescaleDB by hand. Any
// other extension's are unknown.
//
// Nothing but its name tells an extension's function from a user's. A name that
// a writing function of a user's could well have is left out, pure or not.
var extensionGroups = []funcGroup{
	{fnText, onPostgres, "dblink: connections to, and SQL on, other servers, in this session", `
		dblink dblink_build_sql_delete dblink_build_sql_insert dblink_build_sql_update
		dblink_cancel_query dblink_close dblink_connect dblink_connect_u dblink_current_query
		dblink_disconnect dblink_error_message dblink_exec dblink_fetch dblink_get_connections
		dblink_get_notify dblink_get_pkey dblink_get_result dblink_is_busy dblink_open
		dblink_send_query`},

	{fnText, onPostgres, "tablefunc and xml2: run the SQL text that they are given", `
		connectby crosstab crosstab2 crosstab3 crosstab4 xpath_table`},

	{fnText, onPostgres, "PostGIS raster: evaluate an expression, or call a function, that they are given", `
		st_mapalgebra st_mapalgebraexpr st_mapalgebrafct st_mapalgebrafctngb`},

	{fnPins, onPostgres, "pg_trgm, isn, postgres_fdw: settings and connections of this session", `
		set_limit isn_weak postgres_fdw_disconnect postgres_fdw_disconnect_all`},

	{fnSession, onPostgres, "sslinfo, postgres_fdw: this connection, and those of this session", `
		ssl_cipher ssl_client_cert_present ssl_client_dn ssl_client_dn_field ssl_client_serial
		ssl_extension_info ssl_is_used ssl_issuer_dn ssl_issuer_field ssl_version
		postgres_fdw_get_connections`},

	{fnServer, onPostgres, "adminpack: files of this server's host (last in 16)", `
		pg_file_rename pg_file_sync pg_file_unlink pg_file_write pg_logdir_ls`},

	{fnServer, onPostgres, "pg_stat_statements, pg_prewarm, pg_buffercache, pgrowlocks, old_snapshot, pg_walinspect, pg_logicalinspect: counters, cache, locks and log of this server", `
		pg_stat_statements pg_stat_statements_info pg_stat_statements_reset pg_prewarm
		autoprewarm_dump_now autoprewarm_start_worker pg_buffercache_evict
		pg_buffercache_evict_all pg_buffercache_evict_relation pg_old_snapshot_time_mapping
		pgrowlocks pg_get_wal_block_info pg_get_wal_record_info pg_get_wal_records_info
		pg_get_wal_records_info_till_end_of_wal pg_get_wal_stats
		pg_get_wal_stats_till_end_of_wal pg_get_logical_snapshot_info
		pg_get_logical_snapshot_meta`},

	{fnWrite, onPostgres, "pg_surgery, pg_visibility: rewrite rows and maps", `
		heap_force_freeze heap_force_kill pg_truncate_visibility_map`},

	{fnWrite, onPostgres, "PostGIS: add, drop and alter columns, constraints and tables, and lock rows", `
		addgeometrycolumn dropgeometrycolumn dropgeometrytable populate_geometry_columns
		updategeometrysrid postgis_extensions_upgrade postgis_cache_bbox
		st_fromflatgeobuftotable addauth checkauth checkauthtrigger disablelongtransactions
		enablelongtransactions longtransactionsenabled gettransactionid lockrow unlockrows
		addoverviewconstraints addrasterconstraints dropoverviewconstraints
		droprasterconstraints st_createoverview updaterastersrid`},

	{fnWrite, onPostgres, "PostGIS topology: edit topologies; many are named st_ like the pure ones", `
		addedge addface addnode addtopogeometrycolumn addtosearchpath cleartopogeom copytopology
		createtopogeom createtopology droptopogeometrycolumn droptopology maketopologyprecise
		polygonize populate_topology_layer removeunusedprimitives renametopogeometrycolumn
		renametopology fixcorrupttopogeometrycolumn st_addedgemodface st_addedgenewfaces
		st_addisoedge st_addisonode st_changeedgegeom st_createtopogeo st_inittopogeo
		st_modedgeheal st_modedgesplit st_moveisonode st_newedgeheal st_newedgessplit
		st_remedgemodface st_remedgenewface st_remisonode st_removeisoedge st_removeisonode
		topogeo_addgeometry topogeo_addlinestring topogeo_addpoint topogeo_addpolygon
		topogeo_loadgeometry topogeom_addelement topogeom_addtopogeom topogeom_remelement
		totopogeom upgradetopology validatetopology validatetopologyrelation`},

	{fnWrite, onPostgres, "TimescaleDB: make and manage hypertables, policies and jobs", `
		create_hypertable create_distributed_hypertable add_dimension set_chunk_time_interval
		set_integer_now_func drop_chunks reorder_chunk move_chunk compress_chunk
		decompress_chunk recompress_chunk convert_to_columnstore convert_to_rowstore
		add_compression_policy remove_compression_policy add_columnstore_policy
		remove_columnstore_policy add_retention_policy remove_retention_policy
		add_reorder_policy remove_reorder_policy add_continuous_aggregate_policy
		remove_continuous_aggregate_policy refresh_continuous_aggregate add_job alter_job
		delete_job run_job attach_tablespace detach_tablespace detach_tablespaces`},

	{fnHarmless, onPostgres, "pg_trgm: similarity of texts", `
		show_limit show_trgm similarity similarity_dist similarity_op strict_word_similarity
		strict_word_similarity_commutator_op strict_word_similarity_dist_commutator_op
		strict_word_similarity_dist_op strict_word_similarity_op word_similarity
		word_similarity_commutator_op word_similarity_dist_commutator_op word_similarity_dist_op
		word_similarity_op`},

	{fnHarmless, onPostgres, "fuzzystrmatch, unaccent, citext: texts", `
		daitch_mokotoff difference dmetaphone dmetaphone_alt levenshtein levenshtein_less_equal
		metaphone soundex text_soundex unaccent citext citext_cmp citext_eq citext_ge citext_gt
		citext_hash citext_hash_extended citext_larger citext_le citext_lt citext_ne
		citext_pattern_cmp citext_pattern_ge citext_pattern_gt citext_pattern_le
		citext_pattern_lt citext_smaller citextout citextsend texticlike texticnlike
		texticregexeq texticregexne`},

	{fnHarmless, onPostgres, "hstore; its delete is left out, as too good a name for a function that deletes", `
		akeys avals defined each exist exists_all exists_any fetchval hs_concat hs_contained
		hs_contains hstore hstore_cmp hstore_eq hstore_ge hstore_gt hstore_hash
		hstore_hash_extended hstore_le hstore_lt hstore_ne hstore_to_array hstore_to_json
		hstore_to_json_loose hstore_to_jsonb hstore_to_jsonb_loose hstore_to_matrix
		hstore_version_diag isdefined isexists populate_record skeys slice slice_array svals
		tconvert`},

	{fnHarmless, onPostgres, "ltree", `
		_lt_q_regex _lt_q_rregex _ltq_extract_regex _ltq_regex _ltq_rregex
		_ltree_extract_isparent _ltree_extract_risparent _ltree_isparent _ltree_r_isparent
		_ltree_r_risparent _ltree_risparent _ltxtq_exec _ltxtq_extract_exec _ltxtq_rexec
		hash_ltree hash_ltree_extended index lca lt_q_regex lt_q_rregex ltq_regex ltq_rregex
		ltree2text ltree_addltree ltree_addtext ltree_cmp ltree_eq ltree_ge ltree_gt
		ltree_isparent ltree_le ltree_lt ltree_ne ltree_risparent ltree_textadd ltxtq_exec
		ltxtq_rexec nlevel subltree subpath text2ltree`},

	{fnHarmless, onPostgres, "intarray, intagg", `
		_int_contained _int_contains _int_different _int_inter _int_overlap _int_same _int_union
		boolop icount idx intarray_del_elem intarray_push_array intarray_push_elem intset
		intset_subtract intset_union_elem querytree rboolop sort sort_asc sort_desc subarray
		uniq int_array_aggregate int_array_enum`},

	{fnHarmless, onPostgres, "cube, earthdistance, seg", `
		cube_cmp cube_contained cube_contains cube_coord cube_coord_llur cube_dim cube_distance
		cube_enlarge cube_eq cube_ge cube_gt cube_inter cube_is_point cube_le cube_ll_coord
		cube_lt cube_ne cube_overlap cube_size cube_subset cube_union cube_ur_coord
		distance_chebyshev distance_taxicab earth earth_box earth_distance gc_to_sec
		geo_distance latitude ll_to_earth longitude sec_to_gc seg_center seg_cmp seg_contained
		seg_contains seg_different seg_ge seg_gt seg_inter seg_le seg_left seg_lower seg_lt
		seg_over_left seg_over_right seg_overlap seg_right seg_same seg_size seg_union seg_upper`},

	{fnHarmless, onPostgres, "isn", `
		btean13cmp btisbn13cmp btisbncmp btismn13cmp btismncmp btissn13cmp btissncmp btupccmp
		hashean13 hashisbn hashisbn13 hashismn hashismn13 hashissn hashissn13 hashupc is_valid
		isbn isbn13 ismn ismn13 isneq isnge isngt isnle isnlt isnne issn issn13 make_valid upc`},

	{fnHarmless, onPostgres, "uuid-ossp, pgcrypto, tablefunc: volatile only as their values are random", `
		uuid_generate_v1 uuid_generate_v1mc uuid_generate_v3 uuid_generate_v4 uuid_generate_v5
		uuid_nil uuid_ns_dns uuid_ns_oid uuid_ns_url uuid_ns_x500 armor crypt dearmor decrypt
		decrypt_iv digest encrypt encrypt_iv fips_mode gen_random_bytes gen_salt hmac
		pgp_armor_headers pgp_key_id pgp_pub_decrypt pgp_pub_decrypt_bytea pgp_pub_encrypt
		pgp_pub_encrypt_bytea pgp_sym_decrypt pgp_sym_decrypt_bytea pgp_sym_encrypt
		pgp_sym_encrypt_bytea normal_rand`},

	{fnHarmless, onPostgres, "xml2, lo", `
		xml_encode_special_chars xml_valid xpath_bool xpath_list xpath_nodeset xpath_number
		xpath_string lo_oid`},

	{fnHarmless, onPostgres, "pageinspect, pgstattuple, amcheck, pg_buffercache, pg_visibility, pg_freespacemap: read pages", `
		brin_metapage_info brin_page_items brin_page_type brin_revmap_data bt_metap
		bt_multi_page_stats bt_page_items bt_page_stats fsm_page_contents get_raw_page
		gin_leafpage_items gin_metapage_info gin_page_opaque_info gist_page_items
		gist_page_items_bytea gist_page_opaque_info hash_bitmap_info hash_metapage_info
		hash_page_items hash_page_stats hash_page_type heap_page_item_attrs heap_page_items
		heap_tuple_infomask_flags page_checksum page_header tuple_data_split pg_relpages
		pgstatginindex pgstathashindex pgstatindex pgstattuple pgstattuple_approx bt_index_check
		bt_index_parent_check gin_index_check verify_heapam pg_buffercache_numa_pages
		pg_buffercache_pages pg_buffercache_summary pg_buffercache_usage_counts pg_check_frozen
		pg_check_visible pg_visibility pg_visibility_map pg_visibility_map_summary pg_freespace`},

	{fnHarmless, onPostgres, "pgvector", `
		vector halfvec sparsevec l2_distance inner_product cosine_distance l1_distance
		hamming_distance jaccard_distance vector_dims vector_norm l2_norm l2_normalize
		binary_quantize subvector array_to_vector array_to_halfvec array_to_sparsevec
		vector_to_float4 halfvec_to_float4 vector_to_halfvec vector_to_sparsevec
		halfvec_to_vector halfvec_to_sparsevec sparsevec_to_vector sparsevec_to_halfvec
		vector_add vector_sub vector_mul vector_concat vector_negative_inner_product
		vector_spherical_distance vector_l2_squared_distance vector_lt vector_le vector_eq
		vector_ne vector_ge vector_gt vector_cmp`},

	{fnHarmless, onPostgres, "TimescaleDB: time buckets, aggregates and sizes", `
		time_bucket time_bucket_gapfill time_bucket_ng locf interpolate first last histogram
		approximate_row_count hypertable_size hypertable_detailed_size hypertable_index_size
		chunks_detailed_size show_chunks show_tablespaces hypertable_compression_stats
		hypertable_columnstore_stats chunk_compression_stats chunk_columnstore_stats
		hypertable_approximate_size`},

	{fnHarmless, onPostgres, "PostGIS 2 to 3: geometry and geography", `
		st_3dclosestpoint st_3ddfullywithin st_3ddistance st_3ddwithin st_3dextent
		st_3dintersects st_3dlength st_3dlineinterpolatepoint st_3dlongestline st_3dmakebox
		st_3dmaxdistance st_3dperimeter st_3dshortestline st_accum st_addmeasure st_addpoint
		st_affine st_angle st_area st_area2d st_asbinary st_asencodedpolyline st_asewkb
		st_asewkt st_asflatgeobuf st_asgeobuf st_asgeojson st_asgml st_ashexewkb st_askml
		st_aslatlontext st_asmarc21 st_asmvt st_asmvtgeom st_assvg st_astext st_astwkb st_asx3d
		st_azimuth st_bdmpolyfromtext st_bdpolyfromtext st_boundary st_boundingdiagonal
		st_box2dfromgeohash st_buffer st_buildarea st_centroid st_chaikinsmoothing
		st_cleangeometry st_clipbybox2d st_closestpoint st_closestpointofapproach
		st_clusterdbscan st_clusterintersecting st_clusterkmeans st_clusterwithin st_collect
		st_collectionextract st_collectionhomogenize st_combinebbox st_concavehull st_contains
		st_containsproperly st_convexhull st_coorddim st_coverageclean st_coverageinvalidedges
		st_coveragesimplify st_coverageunion st_coveredby st_covers st_cpawithin st_crosses
		st_curven st_curvetoline st_delaunaytriangles st_dfullywithin st_difference st_dimension
		st_disjoint st_distance st_distance_sphere st_distance_spheroid st_distancecpa
		st_distancesphere st_distancespheroid st_dump st_dumppoints st_dumprings st_dumpsegments
		st_dwithin st_endpoint st_envelope st_equals st_estimatedextent st_expand st_extent
		st_exteriorring st_filterbym st_findextent st_flipcoordinates st_force2d st_force3d
		st_force3dm st_force3dz st_force4d st_force_2d st_force_3d st_force_4d
		st_force_collection st_forcecollection st_forcecurve st_forcepolygonccw
		st_forcepolygoncw st_forcerhr st_forcesfs st_frechetdistance st_fromflatgeobuf
		st_generatepoints st_geogfromtext st_geogfromwkb st_geographyfromtext st_geohash
		st_geomcollfromtext st_geomcollfromwkb st_geometricmedian st_geometryfromtext
		st_geometryn st_geometrytype st_geomfromewkb st_geomfromewkt st_geomfromgeohash
		st_geomfromgeojson st_geomfromgml st_geomfromkml st_geomfrommarc21 st_geomfromtext
		st_geomfromtwkb st_geomfromwkb st_gmltosql st_hasarc st_hasm st_hasz
		st_hausdorffdistance st_hexagon st_hexagongrid st_interiorringn st_interpolatepoint
		st_intersection st_intersects st_inversetransformpipeline st_isclosed st_iscollection
		st_isempty st_ispolygonccw st_ispolygoncw st_isring st_issimple st_isvalid
		st_isvaliddetail st_isvalidreason st_isvalidtrajectory st_largestemptycircle st_length
		st_length2d st_length2dspheroid st_lengthspheroid st_letters st_line_interpolate_point
		st_line_locate_point st_line_substring st_linecrossingdirection st_lineextend
		st_linefromencodedpolyline st_linefrommultipoint st_linefromtext st_linefromwkb
		st_lineinterpolatepoint st_lineinterpolatepoints st_linelocatepoint st_linemerge
		st_linestringfromwkb st_linesubstring st_linetocurve st_locate_along_measure
		st_locate_between_measures st_locatealong st_locatebetween st_locatebetweenelevations
		st_longestline st_m st_makebox2d st_makebox3d st_makeenvelope st_makeline st_makepoint
		st_makepointm st_makepolygon st_makevalid st_maxdistance st_maximuminscribedcircle
		st_memcollect st_memsize st_memunion st_minimumboundingcircle st_minimumboundingradius
		st_minimumclearance st_minimumclearanceline st_mlinefromtext st_mlinefromwkb
		st_mpointfromtext st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb st_multi
		st_multilinefromwkb st_multilinestringfromtext st_multipointfromtext
		st_multipointfromwkb st_multipolyfromwkb st_multipolygonfromtext st_ndims st_node
		st_normalize st_npoints st_nrings st_numcurves st_numgeometries st_numinteriorring
		st_numinteriorrings st_numpatches st_numpoints st_offsetcurve st_orderingequals
		st_orientedenvelope st_overlaps st_patchn st_perimeter st_perimeter2d st_point
		st_pointfromgeohash st_pointfromtext st_pointfromwkb st_pointinsidecircle st_pointm
		st_pointn st_pointonsurface st_points st_pointz st_pointzm st_polyfromtext
		st_polyfromwkb st_polygon st_polygonfromtext st_polygonfromwkb st_polygonize st_project
		st_quantizecoordinates st_reduceprecision st_relate st_relatematch
		st_removeirrelevantpointsforview st_removepoint st_removerepeatedpoints
		st_removesmallparts st_reverse st_rotate st_rotatex st_rotatey st_rotatez st_scale
		st_scroll st_segmentize st_seteffectivearea st_setpoint st_setsrid st_sharedpaths
		st_shift_longitude st_shiftlongitude st_shortestline st_simplify st_simplifypolygonhull
		st_simplifypreservetopology st_simplifyvw st_snap st_snaptogrid st_split st_square
		st_squaregrid st_srid st_startpoint st_subdivide st_summary st_swapordinates
		st_symdifference st_symmetricdifference st_tileenvelope st_touches st_transform
		st_transformpipeline st_translate st_transscale st_triangulatepolygon st_unaryunion
		st_union st_voronoilines st_voronoipolygons st_within st_wkbtosql st_wkttosql st_wrapx
		st_x st_xmax st_xmin st_y st_ymax st_ymin st_z st_zmax st_zmflag st_zmin`},

	{fnHarmless, onPostgres, "PostGIS: types, operators and versions", `
		box2d box3d box3dtobox geometry geography geometrytype geomfromewkb geomfromewkt
		find_srid get_proj4_from_srid postgis_addbbox postgis_dropbbox postgis_hasbbox
		postgis_getbbox postgis_full_version postgis_geos_version postgis_lib_version
		postgis_proj_version postgis_version postgis_libxml_version postgis_libjson_version
		postgis_libprotobuf_version postgis_liblwgeom_version postgis_wagyu_version
		postgis_scripts_installed postgis_scripts_released postgis_scripts_build_date
		postgis_lib_build_date postgis_lib_revision postgis_svn_version postgis_noop
		postgis_geos_noop postgis_type_name postgis_typmod_dims postgis_typmod_srid
		postgis_typmod_type postgis_constraint_dims postgis_constraint_srid
		postgis_constraint_type postgis_transform_geometry postgis_srs postgis_srs_all
		postgis_srs_codes postgis_srs_search postgis_geos_compiled_version
		postgis_proj_compiled_version geometry_above geometry_below geometry_contained_3d
		geometry_contains geometry_contains_3d geometry_distance_box geometry_distance_centroid
		geometry_eq geometry_left geometry_overabove geometry_overbelow geometry_overlaps
		geometry_overleft geometry_overright geometry_right geometry_same geometry_within
		geography_eq geography_overlaps`},

	{fnHarmless, onPostgres, "PostGIS raster, less what reads files or calls functions that it is given", `
		st_addband st_approxcount st_approxhistogram st_approxquantile st_approxsummarystats
		st_asgdalraster st_ashexwkb st_asjpeg st_aspect st_aspng st_asraster st_astiff st_aswkb
		st_band st_bandisnodata st_bandmetadata st_bandnodatavalue st_bandpixeltype st_clip
		st_colormap st_contour st_count st_countagg st_distinct4ma st_dumpaspolygons
		st_dumpvalues st_fromgdalraster st_georeference st_geotransform st_grayscale
		st_hasnoband st_height st_hillshade st_histogram st_interpolateraster
		st_invdistweight4ma st_iscoveragetile st_makeemptycoverage st_makeemptyraster st_max4ma
		st_mean4ma st_metadata st_min4ma st_minconvexhull st_mindist4ma st_minpossiblevalue
		st_nearestvalue st_neighborhood st_notsamealignmentreason st_numbands st_pixelascentroid
		st_pixelascentroids st_pixelaspoint st_pixelaspoints st_pixelaspolygon
		st_pixelaspolygons st_pixelheight st_pixelofvalue st_pixelwidth st_quantile st_range4ma
		st_rastertoworldcoord st_rastertoworldcoordx st_rastertoworldcoordy st_rastfromhexwkb
		st_rastfromwkb st_reclass st_resample st_rescale st_resize st_reskew st_retile
		st_rotation st_roughness st_samealignment st_scalex st_scaley st_setbandindex
		st_setbandisnodata st_setbandnodatavalue st_setbandpath st_setgeoreference
		st_setgeotransform st_setm st_setrotation st_setscale st_setskew st_setupperleft
		st_setvalue st_setvalues st_setz st_skewx st_skewy st_slope st_stddev4ma st_sum4ma
		st_summarystats st_summarystatsagg st_tile st_tpi st_tri st_upperleftx st_upperlefty
		st_value st_valuecount st_valuepercent st_width st_worldtorastercoord
		st_worldtorastercoordx st_worldtorastercoordy postgis_gdal_version
		postgis_raster_lib_version postgis_raster_lib_build_date
		postgis_raster_scripts_installed`},

	{fnHarmless, onPostgres, "PostGIS SFCGAL, and what reads topologies", `
		st_3darea st_3dconvexhull st_3ddifference st_3dintersection st_3dunion st_alphashape
		st_approximatemedialaxis st_constraineddelaunaytriangles st_extrude st_forcelhr
		st_isplanar st_issolid st_makesolid st_minkowskisum st_optimalalphashape st_orientation
		st_straightskeleton st_tesselate st_volume postgis_sfcgal_version
		postgis_sfcgal_full_version postgis_sfcgal_scripts_installed getedgebypoint
		getfacebypoint getfacecontainingpoint getnodebypoint getnodeedges getringedges
		gettopogeomelementarray gettopogeomelements gettopologyid gettopologyname
		gettopologysrid st_getfaceedges st_getfacegeometry topologysummary topoelementarray_agg
		asgml astopojson`},
}
