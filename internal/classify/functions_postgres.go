package classify

// postgresGroups are PostgreSQL's built-in functions for which the catalog's
// volatility is no answer, and the SQL syntax that looks like a call. All the
// others stand in functions_postgres_catalog.go, which gen writes from pg_proc
// less the names that stand here.
//
// Volatility misleads in both directions: random and pg_relation_size are
// volatile and harmless; txid_current is stable and assigns a transaction ID,
// pg_walfile_name is immutable and a standby refuses it. Nor does a standby's
// refusal tell: it runs advisory locks, lo_export, pg_reload_conf and the like.
//
// In brackets are the titles of the manual's sections.
var postgresGroups = []funcGroup{
	{fnSequence, onPostgres, "write a sequence (Sequence Manipulation Functions)", `
		nextval setval pg_nextoid`},

	{fnAdvisory, onPostgres, "locks in the memory of one server; a standby grants its own (Advisory Lock Functions)", `
		pg_advisory_lock pg_advisory_lock_shared
		pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared
		pg_advisory_xact_lock pg_advisory_xact_lock_shared
		pg_try_advisory_lock pg_try_advisory_lock_shared
		pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared`},

	{fnSetConfig, onPostgres, "SET in the shape of a function (Configuration Settings Functions)", `
		set_config`},

	{fnSession, onPostgres, "what nextval gave in this session (Sequence Manipulation Functions)", `
		currval lastval`},
	{fnSession, onPostgres, "this session's process, channels, cursors, prepared statements and temporary schema (Session Information Functions; views pg_cursors, pg_prepared_statements)", `
		pg_backend_pid pg_listening_channels pg_cursor pg_prepared_statement
		pg_my_temp_schema pg_is_other_temp_schema
		pg_get_backend_memory_contexts pg_get_loaded_modules`},
	{fnSession, onPostgres, "the two ends of this connection (Session Information Functions)", `
		inet_client_addr inet_client_port inet_server_addr inet_server_port`},
	{fnSession, onPostgres, "counters of this session's transaction (The Cumulative Statistics System, pg_stat_xact_*)", `
		pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit
		pg_stat_get_xact_function_calls pg_stat_get_xact_function_self_time
		pg_stat_get_xact_function_total_time pg_stat_get_xact_numscans
		pg_stat_get_xact_tuples_deleted pg_stat_get_xact_tuples_fetched
		pg_stat_get_xact_tuples_hot_updated pg_stat_get_xact_tuples_inserted
		pg_stat_get_xact_tuples_newpage_updated pg_stat_get_xact_tuples_returned
		pg_stat_get_xact_tuples_updated`},

	{fnPins, onPostgres, "the seed of later random() (Random Functions)", `
		setseed`},
	{fnPins, onPostgres, "the snapshot is good for as long as this transaction is open (Snapshot Synchronization Functions)", `
		pg_export_snapshot`},
	{fnPins, onPostgres, "the backup lasts as long as this session (Backup Control Functions); the older names up to 14", `
		pg_backup_start pg_backup_stop pg_start_backup pg_stop_backup`},
	{fnPins, onPostgres, "this session's view of the statistics (Statistics Functions)", `
		pg_stat_clear_snapshot pg_stat_force_next_flush`},
	{fnPins, onPostgres, "the origin that this session's or transaction's changes are labelled with (Replication Management Functions)", `
		pg_replication_origin_session_setup pg_replication_origin_session_reset
		pg_replication_origin_session_is_setup pg_replication_origin_session_progress
		pg_replication_origin_xact_setup pg_replication_origin_xact_reset`},

	{fnWrite, onPostgres, "assign a transaction ID (Transaction ID and Snapshot Information Functions); marked stable, and a standby refuses them", `
		txid_current pg_current_xact_id`},
	{fnWrite, onPostgres, "write to the log of changes, or send (Backup Control Functions, Replication Management Functions, NOTIFY)", `
		pg_notify pg_logical_emit_message pg_create_restore_point pg_log_standby_snapshot`},
	{fnWrite, onPostgres, "large objects: they write, read and write files, or hold a descriptor of this session (Large Objects, Server-Side Functions); lo_get only reads", `
		lo_creat lo_create lo_import lo_export lo_unlink lo_put lo_from_bytea
		lo_open lo_close lo_lseek lo_lseek64 lo_tell lo_tell64
		lo_truncate lo_truncate64 loread lowrite`},
	{fnWrite, onPostgres, "write catalogs, statistics or index pages (Collation Management, Index Maintenance and Statistics Manipulation Functions)", `
		pg_import_system_collations pg_extension_config_dump pg_stop_making_pinned_objects
		pg_restore_relation_stats pg_restore_attribute_stats
		pg_clear_relation_stats pg_clear_attribute_stats
		brin_summarize_new_values brin_summarize_range brin_desummarize_range
		gin_clean_pending_list`},
	{fnWrite, onPostgres, "pg_upgrade's own", `
		binary_upgrade_add_sub_rel_state binary_upgrade_create_empty_extension
		binary_upgrade_logical_slot_has_caught_up binary_upgrade_replorigin_advance
		binary_upgrade_set_missing_value binary_upgrade_set_next_array_pg_type_oid
		binary_upgrade_set_next_heap_pg_class_oid binary_upgrade_set_next_heap_relfilenode
		binary_upgrade_set_next_index_pg_class_oid binary_upgrade_set_next_index_relfilenode
		binary_upgrade_set_next_multirange_array_pg_type_oid
		binary_upgrade_set_next_multirange_pg_type_oid
		binary_upgrade_set_next_pg_authid_oid binary_upgrade_set_next_pg_enum_oid
		binary_upgrade_set_next_pg_tablespace_oid binary_upgrade_set_next_pg_type_oid
		binary_upgrade_set_next_toast_pg_class_oid
		binary_upgrade_set_next_toast_pg_type_oid
		binary_upgrade_set_next_toast_relfilenode binary_upgrade_set_record_init_privs`},

	{fnServer, onPostgres, "the position and the files of this server's log of changes (Backup Control Functions, WAL Summarization); a standby refuses most", `
		pg_current_wal_lsn pg_current_wal_insert_lsn pg_current_wal_flush_lsn
		pg_walfile_name pg_walfile_name_offset pg_switch_wal
		pg_available_wal_summaries pg_wal_summary_contents pg_get_wal_summarizer_state
		pg_is_in_backup pg_backup_start_time`},
	{fnServer, onPostgres, "replication slots and origins of this server (Replication Management Functions)", `
		pg_create_physical_replication_slot pg_create_logical_replication_slot
		pg_copy_physical_replication_slot pg_copy_logical_replication_slot
		pg_drop_replication_slot pg_replication_slot_advance pg_sync_replication_slots
		pg_logical_slot_get_changes pg_logical_slot_get_binary_changes
		pg_logical_slot_peek_changes pg_logical_slot_peek_binary_changes
		pg_get_replication_slots pg_show_replication_origin_status
		pg_replication_origin_create pg_replication_origin_drop
		pg_replication_origin_oid pg_replication_origin_advance
		pg_replication_origin_progress`},
	{fnServer, onPostgres, "act on this server or its processes (Server Signaling Functions, Recovery Control Functions)", `
		pg_reload_conf pg_rotate_logfile pg_rotate_logfile_old
		pg_cancel_backend pg_terminate_backend pg_log_backend_memory_contexts
		pg_promote pg_wal_replay_pause pg_wal_replay_resume`},
	{fnServer, onPostgres, "reset this server's counters (Statistics Functions)", `
		pg_stat_reset pg_stat_reset_backend_stats pg_stat_reset_replication_slot
		pg_stat_reset_shared pg_stat_reset_single_function_counters
		pg_stat_reset_single_table_counters pg_stat_reset_slru
		pg_stat_reset_subscription_stats`},
	{fnServer, onPostgres, "files of this server's host (Generic File Access Functions)", `
		pg_read_file pg_read_file_old pg_read_binary_file pg_stat_file pg_current_logfile
		pg_ls_dir pg_ls_logdir pg_ls_waldir pg_ls_tmpdir pg_ls_archive_statusdir
		pg_ls_logicalmapdir pg_ls_logicalsnapdir pg_ls_replslotdir pg_ls_summariesdir`},
	{fnServer, onPostgres, "I/O that this server has under way (view pg_aios)", `
		pg_get_aios`},

	{fnText, onPostgres, "run the SQL text that they are given, or fetch from a cursor of this session (Mapping Tables to XML, Text Search Functions); ts_rewrite by its two-argument form", `
		query_to_xml query_to_xmlschema query_to_xml_and_xmlschema
		cursor_to_xml cursor_to_xmlschema ts_stat ts_rewrite`},

	{fnHarmless, onPostgres, "volatile, as their value changes, but they change nothing (Random Functions, Current Date/Time, UUID Functions, Array Functions)", `
		random random_normal array_sample array_shuffle
		clock_timestamp timeofday gen_random_uuid uuidv4 uuidv7
		pg_sleep pg_sleep_for pg_sleep_until current_query`},
	{fnHarmless, onPostgres, "volatile, as they look past the snapshot, but they only read what is replicated (Transaction ID and Snapshot Information, Database Object Management, Large Objects)", `
		lo_get txid_status pg_xact_status pg_xact_commit_timestamp
		pg_xact_commit_timestamp_origin pg_last_committed_xact pg_get_multixact_members
		pg_partition_tree pg_partition_ancestors
		pg_sequence_last_value pg_get_sequence_data
		pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size
		pg_database_size pg_tablespace_size
		pg_collation_actual_version pg_database_collation_actual_version
		amvalidate currtid2`},
	{fnHarmless, onPostgres, "what this server is doing: no answer is wrong on a standby, and some are made there only (Recovery Information Functions, Control Data Functions, Monitoring Database Activity)", `
		pg_is_in_recovery pg_is_wal_replay_paused pg_get_wal_replay_pause_state
		pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp
		pg_control_checkpoint pg_control_init pg_control_recovery pg_control_system
		pg_get_wal_resource_managers pg_get_wait_events pg_jit_available
		pg_lock_status pg_blocking_pids pg_safe_snapshot_blocking_pids
		pg_isolation_test_session_is_blocked pg_prepared_xact pg_notification_queue_usage
		pg_hba_file_rules pg_ident_file_mappings pg_show_all_file_settings
		pg_get_shmem_allocations pg_get_shmem_allocations_numa
		pg_stat_have_stats pg_stat_get_io pg_stat_get_backend_io pg_stat_get_backend_wal
		pg_stat_get_recovery_prefetch`},

	{fnHarmless, onPostgres, "expressions that look like calls (Value Expressions, XML and JSON Functions, Conditional and Subquery Expressions)", `
		coalesce nullif greatest least cast treat grouping
		exists any some all array row
		trim collation normalize
		current_time current_timestamp localtime localtimestamp
		xmlelement xmlforest xmlconcat xmlparse xmlpi xmlroot xmlserialize xmltable
		json_exists json_query json_value json_table json_scalar json_serialize
		json_array json_arrayagg json_objectagg merge_action
		cube rollup sets bernoulli`},
	{fnHarmless, onPostgres, "names of types with a length or a precision (Data Types)", `
		boolean smallint integer int bigint real float double
		decimal dec character char nchar varying national`},
}
