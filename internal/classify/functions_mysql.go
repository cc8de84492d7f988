package classify

// mysqlGroups are the native functions of MySQL 5.6 to 9 and of MariaDB 10.5
// to 12, by hand after the servers' own tables of natives, and what functions
// of components and plugins do harm. Loadable and stored functions are unknown.
// gen reports what MariaDB's own list of natives has that stands not here. In
// brackets are the titles of the manuals' sections.
//
// A name is on a server if any of its versions has it, so a stored function
// may have the name of a native that only another version has. None that does
// what its name says would write.
//
// Nothing behind these groups stops a wrong entry: a read-only server runs the
// locking functions, and lets those write who have the privilege to.
var mysqlGroups = []funcGroup{
	{fnAdvisory, onMySQLs, "named locks of one server; asking for one is as meaningless elsewhere (Locking Functions)", `
		get_lock release_lock release_all_locks is_free_lock is_used_lock`},
	{fnAdvisory, onMySQL, "the locking service (The Locking Service Function Interface)", `
		service_get_read_locks service_get_write_locks service_release_locks`},
	{fnAdvisory, onMySQL, "version tokens: set, locked and shown on one server (Version Tokens Reference)", `
		version_tokens_set version_tokens_edit version_tokens_delete version_tokens_show
		version_tokens_lock_shared version_tokens_lock_exclusive version_tokens_unlock`},

	{fnSession, onMySQLs, "what the session's previous statement did; LAST_INSERT_ID(x) sets it, too (Information Functions)", `
		last_insert_id row_count found_rows`},
	{fnSession, onMySQLs, "which session this is (Information Functions)", `
		connection_id`},
	{fnSession, onMySQL, "which session this is, and what it was sent with (Performance Schema Functions, Query Attributes)", `
		ps_current_thread_id mysql_query_attribute_string`},
	{fnSession, onMariaDB, "what NEXTVAL gave, or Mroonga inserted, in this session (SEQUENCE Functions, Mroonga)", `
		lastval last_insert_grn_id`},
	{fnSession, onMariaDB, "positions of this session's writes in a Galera cluster (Galera Functions)", `
		wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid`},

	{fnSequence, onMariaDB, "write a sequence (SEQUENCE Functions)", `
		nextval setval`},

	{fnServer, onMySQLs, "a file of this server's host (String Functions)", `
		load_file`},
	{fnServer, onMySQL, "threads of this server (Performance Schema Functions)", `
		ps_thread_id`},
	{fnServer, onMariaDB, "this server's binary log (BINLOG_GTID_POS)", `
		binlog_gtid_pos`},
	{fnServer, onMySQL, "change a replication group, or how this server finds its source (Replication Functions)", `
		group_replication_set_as_primary group_replication_switch_to_single_primary_mode
		group_replication_switch_to_multi_primary_mode
		group_replication_set_write_concurrency group_replication_set_communication_protocol
		group_replication_enable_member_action group_replication_disable_member_action
		group_replication_reset_member_actions
		asynchronous_connection_failover_add_source asynchronous_connection_failover_delete_source
		asynchronous_connection_failover_add_managed asynchronous_connection_failover_delete_managed
		asynchronous_connection_failover_reset`},
	{fnServer, onMySQL, "keys, audit log and firewall of this server (Keyring Key-Management Functions, Audit Log Reference, MySQL Enterprise Firewall Reference)", `
		keyring_key_fetch keyring_key_length_fetch keyring_key_type_fetch
		keyring_key_generate keyring_key_store keyring_key_remove
		audit_log_encryption_password_get audit_log_encryption_password_set
		audit_log_filter_flush audit_log_filter_remove_filter audit_log_filter_remove_user
		audit_log_filter_set_filter audit_log_filter_set_user
		audit_log_read audit_log_read_bookmark audit_log_rotate
		mysql_firewall_flush_status mysql_firewall_flush_user
		set_firewall_mode set_firewall_group_mode firewall_group_enlist firewall_group_delist
		read_firewall_users read_firewall_groups read_firewall_whitelist
		read_firewall_allowlist read_firewall_group_allowlist`},
	{fnServer, onMySQL, "dictionaries of the data masking functions: files, or a table behind a cache (MySQL Enterprise Data Masking Function Reference)", `
		gen_dictionary_load gen_dictionary_drop masking_dictionaries_flush
		masking_dictionary_term_add masking_dictionary_term_remove masking_dictionary_remove`},

	{fnText, onMariaDB, "run a command or SQL text, here or on another server (Mroonga User-Defined Functions, Spider Functions)", `
		mroonga_command spider_direct_sql spider_bg_direct_sql spider_copy_tables
		spider_flush_table_mon_cache spider_ping_table`},

	{fnHarmless, onMySQLs, "aggregates and window functions (Aggregate Functions, Window Functions)", `
		avg bit_and bit_or bit_xor count group_concat json_arrayagg json_objectagg
		max min std stddev stddev_pop stddev_samp sum var_pop var_samp variance
		cume_dist dense_rank first_value lag last_value lead nth_value ntile
		percent_rank rank row_number st_collect`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		any_value grouping`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		median percentile_cont percentile_disc rownum`},

	{fnHarmless, onMySQLs, "expressions that look like calls (Operators, Flow Control, Cast and Full-Text Search Functions, Subqueries)", `
		cast convert case exists any some all row values match against
		if ifnull nullif coalesce greatest least isnull interval default name_const`},
	{fnHarmless, onMySQL, "the same, MySQL only: MEMBER OF (8.0)", `
		of`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		nvl nvl2 decode_oracle value`},
	{fnHarmless, onMySQLs, "names of types with a length or a precision (Cast Functions, Data Types)", `
		binary char character varchar varbinary nchar decimal dec numeric fixed
		signed unsigned integer datetime float double real`},
	{fnHarmless, onMySQL, "the same, MySQL only (9.0)", `
		vector`},

	{fnHarmless, onMySQLs, "numbers (Numeric Functions, Bit Functions)", `
		abs acos asin atan atan2 ceil ceiling conv cos cot crc32 degrees div exp floor ln
		log log10 log2 mod pi pow power radians rand round sign sin sqrt tan truncate
		bit_count`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		crc32c to_number`},

	{fnHarmless, onMySQLs, "strings (String Functions, XML Functions, Information Functions)", `
		ascii bin bit_length char_length character_length concat concat_ws elt export_set
		field find_in_set format from_base64 hex insert instr lcase left length locate lower
		lpad ltrim make_set mid oct octet_length ord position quote regexp_instr
		regexp_replace regexp_substr repeat replace reverse right rpad rtrim soundex space
		strcmp substr substring substring_index to_base64 trim ucase unhex upper
		weight_string extractvalue updatexml charset coercibility collation`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		regexp_like`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		chr lengthb natural_sort_key sformat to_char column_add column_check column_create
		column_delete column_exists column_get column_json column_list decode_histogram
		concat_operator_oracle lpad_oracle ltrim_oracle replace_oracle rpad_oracle
		rtrim_oracle substr_oracle trim_oracle
		mroonga_escape mroonga_highlight_html mroonga_normalize mroonga_query_expand
		mroonga_snippet mroonga_snippet_html`},

	{fnHarmless, onMySQLs, "dates and times (Date and Time Functions); the clock is the server's, and no server's is righter", `
		adddate addtime convert_tz curdate current_date current_time current_timestamp
		curtime date date_add date_format date_sub datediff day dayname dayofmonth
		dayofweek dayofyear extract from_days from_unixtime get_format hour last_day
		localtime localtimestamp makedate maketime microsecond minute month monthname now
		period_add period_diff quarter sec_to_time second str_to_date subdate subtime sysdate
		time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_days
		to_seconds unix_timestamp utc_date utc_time utc_timestamp week weekday weekofyear
		year yearweek`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		add_months to_date trunc`},

	{fnHarmless, onMySQLs, "JSON (JSON Functions)", `
		json_array json_array_append json_array_insert json_contains json_contains_path
		json_depth json_extract json_insert json_keys json_length json_merge
		json_merge_patch json_merge_preserve json_object json_overlaps json_pretty
		json_quote json_remove json_replace json_schema_valid json_search json_set
		json_table json_type json_unquote json_valid json_value`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		json_append json_duality_object json_schema_validation_report json_storage_free
		json_storage_size etag`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		json_array_intersect json_compact json_detailed json_equals json_exists
		json_key_value json_loose json_normalize json_object_filter_keys
		json_object_to_array json_query`},

	{fnHarmless, onMySQLs, "hashes, ciphers and passwords (Encryption and Compression Functions)", `
		aes_decrypt aes_encrypt compress decode des_decrypt des_encrypt encode encrypt md5
		old_password password random_bytes sha sha1 sha2 uncompress uncompressed_length`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		statement_digest statement_digest_text validate_password_strength
		asymmetric_decrypt asymmetric_encrypt asymmetric_sign asymmetric_verify
		create_digest`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		kdf`},

	{fnHarmless, onMySQLs, "addresses, UUIDs and information (Information Functions, Miscellaneous Functions)", `
		inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv4_compat is_ipv4_mapped
		is_ipv6 uuid uuid_short current_role current_user database schema session_user
		system_user user version benchmark sleep format_bytes format_pico_time`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		bin_to_uuid uuid_to_bin is_uuid icu_version roles_graphml`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		sys_guid uuid_v4 uuid_v7`},

	{fnHarmless, onMySQLs, "wait for, or compare, positions in the log: meant for replicas (Replication Functions)", `
		master_pos_wait`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		source_pos_wait wait_for_executed_gtid_set wait_until_sql_thread_after_gtids
		gtid_subset gtid_subtract group_replication_get_communication_protocol
		group_replication_get_write_concurrency`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		master_gtid_wait`},

	{fnHarmless, onMySQLs, "geometry (Spatial Analysis Functions)", `
		geomcollfromtext geomcollfromwkb geometrycollection geometrycollectionfromtext
		geometrycollectionfromwkb geometryfromtext geometryfromwkb geomfromtext geomfromwkb
		linefromtext linefromwkb linestring linestringfromtext linestringfromwkb
		mlinefromtext mlinefromwkb mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb
		multilinestring multilinestringfromtext multilinestringfromwkb multipoint
		multipointfromtext multipointfromwkb multipolygon multipolygonfromtext
		multipolygonfromwkb point pointfromtext pointfromwkb polyfromtext polyfromwkb
		polygon polygonfromtext polygonfromwkb
		area asbinary astext aswkb aswkt buffer centroid contains convexhull crosses
		dimension disjoint endpoint envelope equals exteriorring geometryn geometrytype
		glength interiorringn intersects isclosed isempty issimple numgeometries
		numinteriorrings numpoints overlaps pointn srid startpoint touches within x y
		mbrcontains mbrdisjoint mbrequal mbrequals mbrintersects mbroverlaps mbrtouches mbrwithin
		st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer st_centroid
		st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint
		st_distance st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring
		st_geomcollfromtext st_geomcollfromwkb st_geometrycollectionfromtext
		st_geometrycollectionfromwkb st_geometryfromtext st_geometryfromwkb st_geometryn
		st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn
		st_intersection st_intersects st_isclosed st_isempty st_issimple st_length
		st_linefromtext st_linefromwkb st_linestringfromtext st_linestringfromwkb
		st_mlinefromtext st_mlinefromwkb st_mpointfromtext st_mpointfromwkb st_mpolyfromtext
		st_mpolyfromwkb st_multilinestringfromtext st_multilinestringfromwkb
		st_multipointfromtext st_multipointfromwkb st_multipolygonfromtext
		st_multipolygonfromwkb st_numgeometries st_numinteriorrings st_numpoints
		st_overlaps st_pointfromtext st_pointfromwkb st_pointn st_polyfromtext
		st_polyfromwkb st_polygonfromtext st_polygonfromwkb st_simplify st_srid
		st_startpoint st_symdifference st_touches st_union st_within st_x st_y
		mbrcoveredby st_geohash st_isvalid st_latfromgeohash st_longfromgeohash
		st_pointfromgeohash st_validate`},
	{fnHarmless, onMySQL, "the same, MySQL only", `
		distance geomcollection st_geomcollfromtxt mbrcovers st_buffer_strategy
		st_frechetdistance st_hausdorffdistance st_latitude st_lineinterpolatepoint
		st_lineinterpolatepoints st_longitude st_makeenvelope st_numinteriorring
		st_pointatdistance st_swapxy st_transform`},
	{fnHarmless, onMariaDB, "the same, MariaDB only", `
		boundary isring pointonsurface st_boundary st_isring st_pointonsurface st_relate`},

	{fnHarmless, onMySQL, "vectors (Vector Functions)", `
		from_vector string_to_vector to_vector vector_dim vector_distance
		vector_to_string`},
	{fnHarmless, onMariaDB, "vectors (Vector Functions)", `
		vec_distance vec_distance_cosine vec_distance_euclidean vec_fromtext vec_totext`},
}
