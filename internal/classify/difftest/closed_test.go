package difftest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// reviewed are functions of PostgreSQL 13 to 18 that are not immutable and nevertheless
// look at no relation but, some of them, the catalog of types and text search: at
// the clock, at settings, at chance, at the session.
const reviewed = `
	aclexplode age amvalidate anyarray_send anycompatiblearray_send anytextcat array_sample array_send array_shuffle array_to_json
	array_to_string bernoulli bpcharsend brin_bloom_summary_send brin_minmax_multi_summary_send clock_timestamp concat concat_ws
	convert convert_from convert_to current_database current_query current_schema current_schemas current_setting current_user date date_add
	date_cmp_timestamptz date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz date_le_timestamptz date_lt_timestamptz
	date_ne_timestamptz date_part date_subtract date_trunc enum_first enum_last enum_range enum_send extract format gen_random_uuid
	generate_series getdatabaseencoding getpgusername in_range inet_client_addr inet_client_port inet_server_addr inet_server_port
	interval_pl_timestamptz json_agg json_agg_strict json_build_array json_build_object json_object_agg json_object_agg_strict
	json_object_agg_unique json_object_agg_unique_strict json_populate_record json_populate_recordset json_to_record json_to_recordset
	json_to_tsvector jsonb_agg jsonb_agg_strict jsonb_build_array jsonb_build_object jsonb_object_agg jsonb_object_agg_strict
	jsonb_object_agg_unique jsonb_object_agg_unique_strict jsonb_path_exists_tz jsonb_path_match_tz jsonb_path_query_array_tz
	jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset
	jsonb_to_record jsonb_to_recordset jsonb_to_tsvector length make_timestamptz money multirange_send namesend now numeric
	oidvectortypes overlaps pg_backend_pid pg_client_encoding pg_column_size pg_sleep pg_typeof phraseto_tsquery plainto_tsquery
	quote_literal quote_nullable random random_normal range_send record_send regclass regclasssend row_to_json session_user
	statement_timestamp system_user textanycat textsend time timeofday timestamp timestamp_cmp_timestamptz timestamp_eq_timestamptz
	timestamp_ge_timestamptz timestamp_gt_timestamptz timestamp_le_timestamptz timestamp_lt_timestamptz timestamp_ne_timestamptz
	timestamptz timestamptz_cmp_date timestamptz_cmp_timestamp timestamptz_eq_date timestamptz_eq_timestamp timestamptz_ge_date
	timestamptz_ge_timestamp timestamptz_gt_date timestamptz_gt_timestamp timestamptz_le_date timestamptz_le_timestamp
	timestamptz_lt_date timestamptz_lt_timestamp timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp
	timestamptz_pl_interval timetz timezone to_char to_date to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector
	transaction_timestamp ts_debug ts_headline ts_match_tq ts_match_tt ts_parse ts_token_type uuidv4 uuidv7 varcharsend version
	websearch_to_tsquery xml xml_is_well_formed xml_send`

// Every function that may look at a relation makes a text that calls it touch
// everything. An immutable one cannot; the others have been looked at one by one.
func TestClosedFunctions(t *testing.T) {
	o := newOracle(t, replicatedtest.Postgres)
	known := strings.Fields(reviewed)
	names := o.column("SELECT DISTINCT proname FROM pg_proc WHERE oid < 16384 AND (provolatile <> 'i' OR 'regclass'::regtype = ANY (proargtypes)) AND prokind <> 'p' ORDER BY 1")
	for _, name := range names {
		if !classify.Touches(classify.Postgres, "SELECT "+name+"()", nil).All && !slices.Contains(known, name) {
			t.Errorf("not reviewed: %s", name)
		}
	}
}
