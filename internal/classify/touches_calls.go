package classify

import (
	"slices"
	"strings"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// call looks at what stands before an opening parenthesis. If it may be the name
// of a function that is not known to look at its arguments only, reading fails.
func (r *relationReader) call(f *frame) {
	t := r.prev
	switch {
	case !t.names(), f.behind:
	case r.prev2.kw == lex.KwAs, r.prev2.kind == lex.Cast: // an alias or a type
	case t.kw != lex.NoKeyword && r.syntax.isSyntax(t.kw, r.prev2.mark()):
	case f.conflict && r.prev2.kw == lex.KwOn: // ON CONFLICT (…)
	case f.inserts && !r.pg && t.kw == lex.KwValue: // INSERT INTO t VALUE (…)
	case f.verb == lex.KwMerge && t.kw == lex.KwInsert && r.prev2.kw == lex.KwThen:
	case r.closed(t):
	default:
		r.fail()
	}
	f.conflict = false
}

// closed reports whether the name is that of a function which looks at nothing but
// its arguments, the clock, and the like.
func (r *relationReader) closed(t lexeme) bool {
	name := r.lx.Slice(t.start, t.end)
	switch {
	case t.dotted:
		if !r.pg || r.prev2.dotted || r.part(r.prev2) != "pg_catalog" {
			return false
		}
	case r.pg && r.own.defines(name):
		return false // in MySQL what is built in goes before what is stored
	}
	if t.kind != lex.Word && (!r.pg || hasUpper(name)) {
		return false
	}
	return closedFunction(r.d, name)
}

// callsByDot fails if the current token is a name behind a dot that is also one of
// the database's functions, or one that looks at relations: PostgreSQL calls f(x)
// when (x).f is written.
func (r *relationReader) callsByDot() {
	if !r.pg || !r.cur.dotted || r.peek().kind == lex.LParen {
		return
	}
	name := r.lx.Slice(r.cur.start, r.cur.end)
	if r.own.defines(name) || lookup(r.d, name) != fnUnknown && !closedFunction(r.d, name) {
		r.fail()
	}
}

// defines reports whether a function of that name, in some schema, is the
// database's own.
func (n *Definitions) defines(name string) bool {
	if n == nil {
		return false
	}
	if len(name) > maxFuncName+1 {
		name = name[:maxFuncName+1]
	}
	var buf [maxFuncName + 1]byte
	_, ok := n.own[string(appendFold(buf[:0], name))]
	return ok
}

// takesFrom reports whether the parenthesis that opens is that of a function which
// has the word FROM among its arguments, where it leads to no relation.
func (r *relationReader) takesFrom() bool {
	if r.prev.dotted || r.prev.kind != lex.Word {
		return false
	}
	switch r.prev.kw {
	case lex.KwExtract, lex.KwTrim, lex.KwSubstring, lex.KwSubstr, lex.KwOverlay, lex.KwPosition:
		return true
	}
	return r.spells(r.prev, "mid")
}

// closedFunction reports whether the function that is built in, or a well-known
// extension's, under that name looks at nothing but its arguments, the session and
// the clock.
func closedFunction(d Dialect, name string) bool {
	if kind := lookup(d, name); kind != fnHarmless && kind != fnSession {
		return false
	}
	name = foldName(name)
	prefixes, names := openPrefixes, openNames
	if d != Postgres {
		prefixes, names = openMySQLPrefixes, openMySQLNames
	}
	if _, ok := closedNames[name]; ok {
		return true
	}
	if _, ok := names[name]; ok {
		return false
	}
	return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// openPrefixes begin the names of functions, harmless ones among them, that look at
// relations, at their files or at the catalog: PostgreSQL's own, PostGIS's (most
// of which read spatial_ref_sys), pageinspect's, TimescaleDB's.
var openPrefixes = []string{
	"pg_", "pgstat", "has_", "to_reg", "txid_", "st_", "postgis_", "get", "find_", "hypertable_", "chunk", "show_", "lo_",
	"bt_", "brin_page", "brin_metapage", "brin_revmap", "gin_", "gist_page", "hash_page", "hash_metapage", "hash_bitmap",
	"heap_", "fsm_", "topo", "database_to_xml", "schema_to_xml", "table_to_xml", "query_to_xml", "cursor_to_xml",
}

// openNames are more of these.
var openNames = wordSet(
	"acldefault", "any_value_lookup", "approximate_row_count", "asgml", "astopojson", "col_description", "currtid", "currtid2",
	"format_type", "loread", "makeaclitem", "mxid_age", "age_of_xid", "obj_description", "page_header",
	"page_checksum", "row_security_active", "shobj_description", "ts_rewrite", "ts_stat", "tuple_data_split", "verify_heapam",
	"xpath_table", "currval", "lastval",
)

// openMySQLPrefixes and openMySQLNames are the like of MySQL and MariaDB: functions
// to which a table or a sequence is given by name, and those that wait for, or tell
// of, the log.
var (
	openMySQLPrefixes = []string{"mroonga_", "wsrep_", "master_", "source_", "wait_", "gtid_", "group_replication_"}
	openMySQLNames    = wordSet("lastval", "nextval", "setval", "currval", "last_insert_grn_id", "roles_graphml")
)

// closedNames are those that the prefixes catch by mistake.
var closedNames = wordSet("pg_typeof", "pg_size_pretty", "pg_size_bytes", "pg_column_size", "pg_sleep", "pg_backend_pid",
	"get_bit", "get_byte", "getdatabaseencoding", "getpgusername", "pg_client_encoding", "pg_lsn")
