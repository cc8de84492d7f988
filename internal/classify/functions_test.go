package classify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allGroups is what the tables say, before they are merged into funcs.
func allGroups() []funcGroup {
	var all []funcGroup
	for _, t := range funcTables {
		all = append(all, t...)
	}
	return all
}

func (g funcGroup) list() []string { return strings.Fields(g.names) }

// TestFunctionsDeniedAreNotHarmless has the deny lists that were made by
// calling the functions on a standby and on read-only servers. A pattern
// stands for every name of the tables that it matches, of which there must be
// one.
func TestFunctionsDeniedAreNotHarmless(t *testing.T) {
	tests := []struct {
		name     string
		dialects []Dialect
		kinds    []funcKind
		names    string
	}{
		{
			name: "postgres sequences", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnSequence, fnSession},
			names: "nextval setval currval lastval pg_nextoid",
		},
		{
			name: "postgres advisory", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnAdvisory},
			names: "pg_advisory_* pg_try_advisory_*",
		},
		{
			name: "postgres session", dialects: []Dialect{Postgres, Generic},
			kinds: []funcKind{fnSession, fnSetConfig, fnPins, fnText},
			names: `set_config setseed pg_export_snapshot pg_backend_pid cursor_to_xml cursor_to_xmlschema
				pg_listening_channels pg_my_temp_schema pg_backup_start pg_backup_stop pg_start_backup
				pg_stop_backup pg_cursor pg_prepared_statement`,
		},
		{
			name: "postgres transaction IDs and WAL", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnWrite, fnServer},
			names: `txid_current pg_current_xact_id pg_current_wal_* pg_current_wal_lsn
				pg_current_wal_insert_lsn pg_current_wal_flush_lsn pg_walfile_name pg_walfile_name_offset
				pg_switch_wal pg_create_restore_point pg_logical_emit_message`,
		},
		{
			name: "postgres notify", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnWrite},
			names: "pg_notify",
		},
		{
			name: "postgres large objects", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnWrite},
			names: `lo_creat lo_create lo_import lo_export lo_unlink lo_put lo_from_bytea lo_open lo_close
				lo_lseek lo_lseek64 lo_tell lo_tell64 lo_truncate lo_truncate64 loread lowrite`,
		},
		{
			name: "postgres slots and origins", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnServer, fnPins},
			names: `pg_create_*_replication_slot pg_copy_*_replication_slot pg_drop_replication_slot
				pg_replication_slot_advance pg_logical_slot_get_* pg_logical_slot_peek_*
				pg_replication_origin_* pg_sync_replication_slots`,
		},
		{
			name: "postgres server control", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnServer, fnWrite},
			names: `pg_reload_conf pg_rotate_logfile pg_rotate_logfile_old pg_terminate_backend pg_cancel_backend
				pg_log_backend_memory_contexts pg_promote pg_wal_replay_pause pg_wal_replay_resume pg_stat_reset*
				pg_stat_statements_reset pg_import_system_collations brin_summarize_* brin_desummarize_range
				gin_clean_pending_list pg_extension_config_dump binary_upgrade_*`,
		},
		{
			name: "postgres host files", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnServer},
			names: `pg_read_file pg_read_binary_file pg_stat_file pg_ls_dir pg_ls_* pg_file_write pg_file_unlink
				pg_file_rename pg_file_sync`,
		},
		{
			name: "postgres SQL text", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnText},
			names: `query_to_xml query_to_xmlschema query_to_xml_and_xmlschema query_to_xml* ts_stat ts_rewrite
				dblink dblink_* dblink_exec dblink_connect crosstab* connectby`,
		},
		{
			name: "postgres extensions", dialects: []Dialect{Postgres, Generic}, kinds: []funcKind{fnPins, fnWrite, fnServer},
			names: `set_limit heap_force_kill heap_force_freeze pg_truncate_visibility_map autoprewarm_*
				addgeometrycolumn dropgeometry* populate_geometry_columns updategeometrysrid st_addedge*
				st_createoverview st_fromflatgeobuftotable create_hypertable`,
		},
		{
			name: "mysql locks", dialects: []Dialect{MySQL, MariaDB, AnyMySQL, Generic}, kinds: []funcKind{fnAdvisory},
			names: "get_lock release_lock release_all_locks is_free_lock is_used_lock",
		},
		{
			name: "mysql session", dialects: []Dialect{MySQL, MariaDB, AnyMySQL, Generic}, kinds: []funcKind{fnSession},
			names: "last_insert_id row_count found_rows connection_id",
		},
		{
			name: "mysql files", dialects: []Dialect{MySQL, MariaDB, AnyMySQL, Generic}, kinds: []funcKind{fnServer},
			names: "load_file",
		},
		{
			name: "mysql only", dialects: []Dialect{MySQL, AnyMySQL, Generic}, kinds: []funcKind{fnSession, fnAdvisory, fnServer},
			names: `ps_current_thread_id service_get_read_locks service_get_write_locks service_release_locks
				version_tokens_* group_replication_set_* group_replication_switch_to_*
				group_replication_enable_member_action* group_replication_disable_member_action*
				group_replication_reset_member_action* group_replication_set_as_primary
				asynchronous_connection_failover_* keyring_key_* audit_log_* mysql_firewall_* set_firewall_*
				gen_dictionary_load gen_dictionary_drop mysql_query_attribute_string`,
		},
		{
			name: "mariadb only", dialects: []Dialect{MariaDB, AnyMySQL, Generic},
			kinds: []funcKind{fnSequence, fnSession, fnServer, fnText},
			names: `nextval setval lastval binlog_gtid_pos wsrep_last_seen_gtid wsrep_last_written_gtid
				wsrep_sync_wait_upto_gtid mroonga_command spider_direct_sql spider_bg_direct_sql
				spider_copy_tables`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, pattern := range strings.Fields(test.names) {
				for _, name := range matches(t, pattern) {
					for _, d := range test.dialects {
						if kind := lookup(d, name); !slices.Contains(test.kinds, kind) {
							t.Errorf("%v: %s is %v, want one of %v", d, name, kind, test.kinds)
						}
					}
				}
			}
		})
	}
}

// matches are the names of the tables that a pattern stands for, less those
// that the lists call reads by name.
func matches(t *testing.T, pattern string) []string {
	t.Helper()
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	var names []string
	for _, e := range funcs.entries {
		if ok, err := path.Match(pattern, e.name); err != nil {
			t.Fatal(err)
		} else if ok {
			names = append(names, e.name)
		}
	}
	if len(names) == 0 {
		t.Errorf("no name matches %s", pattern)
	}
	return names
}

func TestFunctionsHarmless(t *testing.T) {
	tests := []struct {
		name     string
		dialects []Dialect
		names    string
	}{
		{
			name: "everywhere", dialects: []Dialect{Generic, Postgres, MySQL, MariaDB, AnyMySQL},
			names: genericNames,
		},
		{
			name: "postgres, volatile but pure", dialects: []Dialect{Postgres},
			names: `random clock_timestamp timeofday gen_random_uuid pg_sleep pg_sleep_for pg_sleep_until
				pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size pg_database_size
				pg_tablespace_size lo_get pg_xact_status txid_status pg_partition_tree pg_partition_ancestors
				pg_sequence_last_value current_query pg_jit_available pg_collation_actual_version
				pg_database_collation_actual_version pg_notification_queue_usage pg_stat_get_activity
				pg_stat_get_wal_receiver pg_stat_get_numscans pg_blocking_pids pg_is_in_recovery
				pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp
				pg_control_checkpoint pg_control_system pg_lock_status pg_hba_file_rules`,
		},
		{
			name: "postgres, of the catalog", dialects: []Dialect{Postgres},
			names: `int4 text date timestamptz numeric varchar uuid jsonb regclass to_tsvector to_char jsonb_set
				json_build_object jsonb_agg string_agg array_agg percentile_cont generate_series unnest
				date_trunc pg_get_viewdef obj_description format_type pg_table_is_visible has_table_privilege
				current_setting version now statement_timestamp pg_size_pretty regexp_replace encode digest
				table_to_xml schema_to_xml database_to_xml row_to_json ts_headline pg_typeof`,
		},
		{
			name: "postgres 16 to 18", dialects: []Dialect{Postgres},
			names: `any_value random_normal system_user erf erfc date_add date_subtract array_sample array_shuffle
				pg_input_is_valid pg_input_error_info json_array json_arrayagg json_objectagg json_exists
				json_query json_value json_table json_scalar json_serialize to_bin to_oct xmltext pg_basetype
				unicode_assigned unicode_version icu_unicode_version uuid_extract_timestamp
				uuid_extract_version merge_action array_reverse array_sort casefold crc32 crc32c gamma lgamma
				uuidv4 uuidv7 has_largeobject_privilege pg_get_acl`,
		},
		{
			name: "postgres extensions", dialects: []Dialect{Postgres},
			names: `similarity word_similarity show_trgm st_distance st_dwithin st_makepoint st_asgeojson hstore
				akeys citext_eq subpath nlevel icount idx cube_distance earth_distance ll_to_earth levenshtein
				soundex unaccent uuid_generate_v4 uuid_generate_v1mc crypt gen_salt gen_random_bytes
				pgp_sym_encrypt pgp_pub_encrypt normal_rand cosine_distance l2_distance time_bucket
				get_raw_page pgstattuple bt_index_check pg_buffercache_pages`,
		},
		{
			name: "mysql and mariadb", dialects: []Dialect{MySQL, MariaDB, AnyMySQL},
			names: `group_concat json_extract json_unquote json_table ifnull if date_format unix_timestamp
				str_to_date curdate timestampdiff rand uuid uuid_short sysdate sleep benchmark match against
				values convert interval insert st_distance_sphere point md5 sha2 aes_encrypt master_pos_wait
				database user version row_number inet6_aton char_length field elt`,
		},
		{
			name: "mysql only", dialects: []Dialect{MySQL},
			names: `regexp_like bin_to_uuid uuid_to_bin any_value grouping json_storage_size st_transform
				wait_for_executed_gtid_set wait_until_sql_thread_after_gtids source_pos_wait gtid_subset
				statement_digest group_replication_get_communication_protocol string_to_vector`,
		},
		{
			name: "mariadb only", dialects: []Dialect{MariaDB},
			names: `nvl nvl2 add_months to_char sformat natural_sort_key median json_query json_exists column_get
				master_gtid_wait vec_distance sys_guid lengthb chr`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range strings.Fields(test.names) {
				for _, d := range test.dialects {
					if kind := lookup(d, name); kind != fnHarmless {
						t.Errorf("%v: %s is %v", d, name, kind)
					}
				}
			}
		})
	}
}

func TestFunctionsHoldOnEachServerMeant(t *testing.T) {
	for _, e := range funcs.entries {
		k := e.kinds
		for _, c := range []struct {
			d  Dialect
			of []Dialect
		}{
			{AnyMySQL, []Dialect{MySQL, MariaDB}},
			{Generic, []Dialect{Postgres, MySQL, MariaDB}},
		} {
			for _, o := range c.of {
				if k[c.d] == fnHarmless && k[o] != fnHarmless {
					t.Errorf("%s is harmless under %v but %v under %v", e.name, c.d, k[o], o)
				}
				if k[o] > fnHarmless && k[c.d] <= fnHarmless {
					t.Errorf("%s is %v under %v but %v under %v", e.name, k[c.d], c.d, k[o], o)
				}
			}
		}
	}
}

func TestFunctionUnknown(t *testing.T) {
	for _, name := range []string{
		"", "reserve_copy", "close_month", "delete", "system", "nextvalue", "sum_", "su",
		"LOWE\u212a", "\u017fum", // letters that Unicode folds to k and s
		strings.Repeat("a", maxFuncName), strings.Repeat("a", maxFuncName+1), strings.Repeat("a", 1<<16),
		"count\x00", "\x00", "\x00count", "pg_sleep\x00", "pg_sleep\x00\x00_for", "@bs", "[bs", "abs ", " abs", "\xc1bs",
	} {
		for d := Generic; d <= AnyMySQL+1; d++ {
			if kind := lookup(d, name); kind != fnUnknown {
				t.Errorf("%v: %q is %v", d, name, kind)
			}
		}
	}
	if kind := lookup(Dialect(200), "abs"); kind != fnUnknown {
		t.Errorf("abs is %v under a dialect that does not exist", kind)
	}
}

func TestFunctionNamesInAnyCase(t *testing.T) {
	for _, e := range funcs.entries {
		mixed := []byte(e.name)
		for i := 0; i < len(mixed); i += 2 {
			mixed[i] = strings.ToUpper(e.name)[i]
		}
		for _, name := range []string{e.name, strings.ToUpper(e.name), string(mixed)} {
			for d := Generic; d <= AnyMySQL; d++ {
				if got := lookup(d, name); got != e.kinds[d] {
					t.Errorf("%v: %s is %v, want %v", d, name, got, e.kinds[d])
				}
			}
		}
	}
}

func TestFunctionNamesStandOnce(t *testing.T) {
	wellFormed := regexp.MustCompile(`^_?[a-z][a-z0-9_]*$`)
	for _, server := range []servers{onPostgres, onMySQL, onMariaDB} {
		seen := map[string]string{}
		for _, g := range allGroups() {
			if g.on&server == 0 {
				continue
			}
			for _, name := range g.list() {
				if first, ok := seen[name]; ok {
					t.Errorf("%s stands in %q and in %q", name, first, g.why)
				}
				seen[name] = g.why
				if !wellFormed.MatchString(name) {
					t.Errorf("%q is no name in lower case", name)
				}
			}
		}
	}
	for i, name := range strings.Fields(genericNames) {
		if slices.Index(strings.Fields(genericNames), name) != i {
			t.Errorf("%s stands twice in genericNames", name)
		}
	}
}

func TestFunctionGroupsAreComplete(t *testing.T) {
	for _, g := range allGroups() {
		if g.kind == fnUnknown || g.kind >= funcKindEnd || g.on == 0 || g.on&^onAll != 0 ||
			g.why == "" || len(g.list()) == 0 {
			t.Errorf("group %q: kind %v, on %b, %d names", g.why, g.kind, g.on, len(g.list()))
		}
	}
}

func TestFuncKindNames(t *testing.T) {
	want := "unknown harmless sequence advisory session set-config pins write server text invalid"
	var got []string
	for k := fnUnknown; k <= funcKindEnd; k++ {
		got = append(got, k.String())
	}
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got %s\nwant %s", s, want)
	}
}

// TestFunctionsCatalogIsGenerated checks what can be without a server: that
// the file is as gen leaves it, and was read from the versions supported.
func TestFunctionsCatalogIsGenerated(t *testing.T) {
	const name = "functions_postgres_catalog.go"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if !ast.IsGenerated(file) {
		t.Errorf("%s has no line that says it is generated", name)
	}
	for _, v := range []string{"15", "16", "17", "18"} {
		if !regexp.MustCompile(`(?m)^// Read from .*PostgreSQL ` + v + `\.`).Match(text) {
			t.Errorf("%s was not read from PostgreSQL %s", name, v)
		}
	}
	for _, g := range postgresCatalogGroups {
		if g.kind != fnHarmless || g.on != onPostgres {
			t.Errorf("group %q is %v on %b", g.why, g.kind, g.on)
		}
		if !slices.IsSorted(g.list()) {
			t.Errorf("group %q is not sorted", g.why)
		}
		if len(g.list()) < 50 {
			t.Errorf("group %q has only %d names", g.why, len(g.list()))
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	names := []string{"count", "COALESCE", "pg_advisory_xact_lock_shared", "reserve_copy", strings.Repeat("a", 100)}
	if n := testing.AllocsPerRun(100, func() {
		for _, name := range names {
			lookup(Postgres, name)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, name := range []string{"max", "COUNT", "coalesce", "date_trunc", "pg_advisory_xact_lock_shared", "reserve_copy"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lookup(Postgres, name)
			}
		})
	}
	// All names in turn: the branch predictor and the caches know none.
	b.Run("every", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			lookup(Postgres, funcs.entries[i*7919%len(funcs.entries)].name)
		}
	})
}

func BenchmarkNewFuncSet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newFuncSet(funcTables[:])
	}
}
