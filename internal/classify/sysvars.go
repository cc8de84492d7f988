package classify

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// ownVars are MySQL's variables whose value is left by an earlier statement of the
// session, or pins the session's clock or position.
const ownVars = " last_insert_id identity insert_id warning_count error_count pseudo_thread_id" +
	" rand_seed1 rand_seed2 in_transaction last_gtid gtid_current_pos gtid_binlog_pos gtid_executed timestamp "

// sysVar takes the name behind @@, which is the current token.
func (w *walker) sysVar() {
	ahead := w.lx
	k := ahead.Next()
	if k == lex.Word {
		switch ahead.Kw {
		case lex.KwGlobal, lex.KwSession, lex.KwLocal:
			part := ahead
			if kind := part.Next(); part.Dotted {
				k, ahead = kind, part
			}
		}
	}
	if k == lex.Word || k == lex.Name || k == lex.Quoted {
		w.facts |= factSysVar
		if contained(ownVars, ahead.Text()) {
			w.facts |= factSysVarOwn
		}
	} else {
		w.facts |= factUnknown
		return
	}
	w.lx = ahead
}

// replicatedSchemas are the tables of MySQL's information_schema that tell of
// replicated metadata.
const replicatedSchemas = " applicable_roles administrable_role_authorizations character_sets check_constraints" +
	" collations collation_character_set_applicability columns columns_extensions column_privileges column_statistics" +
	" enabled_roles events keywords key_column_usage parameters partitions referential_constraints" +
	" role_column_grants role_routine_grants role_table_grants routines schemata schemata_extensions" +
	" schema_privileges statistics st_geometry_columns st_spatial_reference_systems st_units_of_measure" +
	" tables tables_extensions tablespaces tablespaces_extensions table_constraints table_constraints_extensions" +
	" table_privileges triggers user_attributes user_privileges views view_routine_usage view_table_usage" +
	" geometry_columns spatial_ref_sys sql_functions sequences periods key_period_usage "

// replicatedSchema reports whether a table of information_schema tells of
// replicated metadata, or of facts that are alike on all servers.
func replicatedSchema(name string) bool { return contained(replicatedSchemas, name) }

// contained reports whether list, a list of lower-case names between blanks, holds
// name, in any case.
func contained(list, name string) bool {
	if name == "" {
		return false
	}
	for rest := list; ; {
		i := strings.IndexByte(rest, ' ')
		if i < 0 {
			return false
		}
		word := rest[:i]
		rest = rest[i+1:]
		if len(word) == len(name) && strings.EqualFold(word, name) {
			return true
		}
	}
}
