package dialect

import "github.com/sqlreplicated/replicated/internal/classify"

// postgresOwn is true of the server's own schemas, and of those of temporary
// tables.
const postgresOwn = `(n.nspname ~ '^pg_' OR n.nspname = 'information_schema')`

// postgresNamed are the relations that a text can name. Of the triggers those of
// constraints are left out: what they do, the links tell. A rule may do anything
// besides, or instead.
const postgresNamed = `SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, (c.relkind = 'f')::pg_catalog.text,
	(c.relkind = 'f' OR EXISTS (
		SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT EXISTS (
			SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.oid = t.tgconstraint AND k.contype <> 't')
	) OR EXISTS (
		SELECT 1 FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type <> '1'
	))::pg_catalog.text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT ` + postgresOwn

// postgresExpressions are the expressions that run when a relation is touched: a view's
// query, a policy's conditions; and when it is written, defaults, generated
// columns, checks, and what indexes and partitions are made by.
const postgresExpressions = `code(rel, tree, onwrite) AS (
	SELECT r.ev_class, r.ev_action::pg_catalog.text, false FROM pg_catalog.pg_rewrite r
		JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
	WHERE r.oid >= 16384 AND r.ev_type = '1' AND c.relkind = 'v'
	UNION ALL SELECT l.polrelid, l.polqual::pg_catalog.text, false FROM pg_catalog.pg_policy l
	UNION ALL SELECT l.polrelid, l.polwithcheck::pg_catalog.text, true FROM pg_catalog.pg_policy l
	UNION ALL SELECT a.adrelid, a.adbin::pg_catalog.text, true FROM pg_catalog.pg_attrdef a
	UNION ALL SELECT k.conrelid, k.conbin::pg_catalog.text, true FROM pg_catalog.pg_constraint k WHERE k.conrelid <> 0
	UNION ALL SELECT i.indrelid, pg_catalog.concat(i.indexprs::pg_catalog.text, i.indpred::pg_catalog.text), true
		FROM pg_catalog.pg_index i WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
	UNION ALL SELECT p.partrelid, p.partexprs::pg_catalog.text, true FROM pg_catalog.pg_partitioned_table p
)`

// postgresLinks: partitions and children; what cascades; what views, policies and
// defaults depend on; sequences and the tables that own them. A materialized view
// is none: it holds what it had when it was refreshed, which is DDL. pg_depend
// lacks the server's own relations, which the trees have (nodes/outfuncs.c).
const postgresLinks = `WITH ` + postgresExpressions + `, links(a, b, onread, onwrite) AS (
	SELECT i.inhparent, i.inhrelid, true, true FROM pg_catalog.pg_inherits i
	UNION ALL
	SELECT k.confrelid, k.conrelid, false, true FROM pg_catalog.pg_constraint k
	WHERE k.contype = 'f' AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))
	UNION ALL
	SELECT r.ev_class, d.refobjid, true, true FROM pg_catalog.pg_rewrite r
		JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
		JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
	WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
	UNION ALL
	SELECT l.polrelid, d.refobjid, true, false FROM pg_catalog.pg_policy l
		JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = l.oid
	WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
	UNION ALL
	SELECT a.adrelid, d.refobjid, false, true FROM pg_catalog.pg_attrdef a
		JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid = a.oid
	WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
	UNION ALL
	SELECT d.refobjid, d.objid, false, true FROM pg_catalog.pg_depend d
		JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S'
	WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
		AND d.deptype IN ('a', 'i')
	UNION ALL
	SELECT code.rel, m[1]::pg_catalog.oid, true, false
	FROM code CROSS JOIN LATERAL pg_catalog.regexp_matches(code.tree, ':relid (\d+)', 'g') m
	WHERE pg_catalog.length(m[1]) < 6 AND m[1]::pg_catalog.int4 < 16384 AND m[1] <> '0'
)
SELECT DISTINCT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, m.nspname::pg_catalog.text, t.relname::pg_catalog.text,
	l.onread::pg_catalog.text, l.onwrite::pg_catalog.text
FROM links l
	JOIN pg_catalog.pg_class c ON c.oid = l.a JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_class t ON t.oid = l.b JOIN pg_catalog.pg_namespace m ON m.oid = t.relnamespace
WHERE l.a <> l.b AND c.relkind <> 'i' AND t.relkind NOT IN ('i', 'I') AND NOT ` + postgresOwn

// postgresRuns are the functions in these expressions. What is built in and
// immutable looks at nothing but its arguments.
const postgresRuns = `WITH ` + postgresExpressions + `
SELECT DISTINCT n.nspname::pg_catalog.text, c.relname::pg_catalog.text, p.proname::pg_catalog.text, ` + postgresTrusted + `::pg_catalog.text, code.onwrite::pg_catalog.text
FROM code CROSS JOIN LATERAL pg_catalog.regexp_matches(code.tree, ` + postgresCalls + `, 'g') f
	JOIN pg_catalog.pg_proc p ON p.oid = f[1]::pg_catalog.oid
	JOIN pg_catalog.pg_class c ON c.oid = code.rel JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (p.oid >= 16384 OR p.provolatile <> 'i') AND NOT ` + postgresOwn

// postgresForeignCode is true of functions in a language in which relations are
// looked at as a matter of course.
const postgresForeignCode = `EXISTS (SELECT 1 FROM pg_catalog.pg_language g WHERE g.oid = p.prolang AND g.lanname NOT IN ('internal', 'c'))`

const postgresSymbols = `SELECT DISTINCT o.oprname::pg_catalog.text FROM pg_catalog.pg_operator o
	JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
WHERE o.oid >= 16384 AND ` + postgresForeignCode

// postgresOpaque: casts, and the checks and defaults of domains, run such functions.
const postgresOpaque = `SELECT (EXISTS (
	SELECT 1 FROM pg_catalog.pg_cast x JOIN pg_catalog.pg_proc p ON p.oid = x.castfunc WHERE p.oid >= 16384 AND ` + postgresForeignCode + `
) OR EXISTS (
	SELECT 1 FROM (
		SELECT k.conbin::pg_catalog.text FROM pg_catalog.pg_constraint k WHERE k.contypid <> 0
		UNION ALL SELECT t.typdefaultbin::pg_catalog.text FROM pg_catalog.pg_type t WHERE t.typtype = 'd'
	) d(tree) CROSS JOIN LATERAL pg_catalog.regexp_matches(d.tree, ` + postgresCalls + `, 'g') f
		JOIN pg_catalog.pg_proc p ON p.oid = f[1]::pg_catalog.oid
	WHERE p.oid >= 16384 AND ` + postgresForeignCode + `
))::pg_catalog.text`

func relationsPostgres(r *relationsReader) error {
	err := r.each(postgresNamed, 4, func(row []cell) {
		name := schemaName(row)
		r.into.Relations = append(r.into.Relations, name)
		if row[2].on() {
			r.into.ReadsAll = append(r.into.ReadsAll, name)
		}
		if row[3].on() {
			r.into.WritesAll = append(r.into.WritesAll, name)
		}
	})
	if err != nil {
		return err
	}
	err = r.each(postgresLinks, 6, func(row []cell) {
		r.into.Links = append(r.into.Links, classify.SchemaLink{From: schemaName(row), To: schemaName(row[2:]), Read: row[4].on(), Write: row[5].on()})
	})
	if err != nil {
		return err
	}
	err = r.each(postgresRuns, 5, func(row []cell) {
		r.into.Runs = append(r.into.Runs, classify.SchemaRun{Relation: schemaName(row), Function: row[2].text, Trusted: row[3].on(), Write: row[4].on()})
	})
	if err != nil {
		return err
	}
	err = r.each(postgresSymbols, 1, func(row []cell) { r.into.Symbols = append(r.into.Symbols, row[0].text) })
	if err != nil {
		return err
	}
	return r.each(postgresOpaque, 1, func(row []cell) { r.into.Opaque = row[0].on() })
}
