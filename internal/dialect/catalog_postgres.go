package dialect

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// What is not built in has an OID from 16384 on (FirstNormalObjectId of
// access/transam.h). pg_depend says what belongs to an extension; of what is built
// in it says nothing, because that is pinned.
const (
	postgresTrusted = `(p.oid < 16384 OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend e
	WHERE e.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.objid = p.oid AND e.deptype = 'e'))`

	// postgresVolatile: a function is declared volatile. An aggregate never is, but
	// the functions that it is made of may be, and so may those in the default of
	// an argument, which the caller runs.
	postgresVolatile = `(p.provolatile = 'v' OR p.proargdefaults IS NOT NULL AND EXISTS (
	SELECT 1 FROM pg_catalog.regexp_matches(p.proargdefaults::pg_catalog.text, ` + postgresCalls + `, 'g') m
		JOIN pg_catalog.pg_proc s ON s.oid = m[1]::pg_catalog.oid
	WHERE s.provolatile = 'v') OR p.prokind = 'a' AND EXISTS (
	SELECT 1 FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc s ON s.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn,
		a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
	WHERE a.aggfnoid = p.oid AND s.provolatile = 'v'))`

	// postgresCalls finds the functions, by OID, in an expression's tree
	// (nodes/outfuncs.c).
	postgresCalls = `':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)'`
)

// postgresVersion changes with what the other queries tell: with the rows of the
// catalog that they read, and with the transactions that have written these. It
// costs a few milliseconds where reading ten thousand views takes a second.
var postgresVersion = `SELECT pg_catalog.concat_ws(' ', pg_catalog.current_database(), ` +
	rowsVersion("oid", "pg_proc WHERE oid >= 16384") + `, ` +
	rowsVersion("oid", "pg_operator WHERE oid >= 16384") + `, ` +
	rowsVersion("oid", "pg_rewrite WHERE oid >= 16384") + `, ` +
	rowsVersion("oid", "pg_policy") + `, ` +
	rowsVersion("oid", "pg_namespace WHERE nspname !~ '^pg_'") + `, ` +
	rowsVersion("oid", "pg_class WHERE relkind IN ('v', 'f', 'p') OR relrowsecurity") + `, ` +
	rowsVersion("inhrelid", "pg_inherits WHERE inhrelid IN (SELECT oid FROM pg_catalog.pg_class WHERE relkind = 'f')") + `,
	(SELECT pg_catalog.count(*) FROM pg_catalog.pg_depend WHERE classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND deptype = 'e'))`

func rowsVersion(id, from string) string {
	return "\n\t(SELECT pg_catalog.count(*)::pg_catalog.text || '/' || pg_catalog.sum(pg_catalog.hashtext(" +
		id + "::pg_catalog.text || '/' || xmin::pg_catalog.text))::pg_catalog.text FROM pg_catalog." + from + ")"
}

// postgresFunctions are the functions that are not built in, and those built-in
// ones that share a name with one, which a call may mean as well. A function of
// one argument that may be a row can be called like a field of the row.
const postgresFunctions = `SELECT n.nspname::pg_catalog.text, p.proname::pg_catalog.text,
	pg_catalog.bool_and(NOT ` + postgresVolatile + `)::pg_catalog.text,
	pg_catalog.bool_and(` + postgresTrusted + `)::pg_catalog.text,
	pg_catalog.bool_or(p.prokind = 'f' AND p.pronargs >= 1 AND p.pronargs - p.pronargdefaults <= 1 AND t.typtype IN ('c', 'd', 'p'))::pg_catalog.text
FROM pg_catalog.pg_proc p
	JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
	LEFT JOIN pg_catalog.pg_type t ON t.oid = p.proargtypes[0]
WHERE p.prokind <> 'p' AND n.nspname !~ '^pg_temp_'
	AND (p.oid >= 16384 OR p.proname IN (SELECT u.proname FROM pg_catalog.pg_proc u WHERE u.oid >= 16384))
GROUP BY 1, 2`

const postgresOperators = `SELECT o.oprname::pg_catalog.text, n.nspname::pg_catalog.text, p.proname::pg_catalog.text,
	pg_catalog.bool_and(` + postgresTrusted + `)::pg_catalog.text
FROM pg_catalog.pg_operator o
	JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
	JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE o.oid >= 16384 AND p.provolatile = 'v'
GROUP BY 1, 2, 3`

// postgresRelations are the views, views over them, and relations with row
// security that run a function which is volatile or in the list of those that the
// tables deny though they are not. Which functions a rule or policy calls stands in
// its tree, as OIDs (nodes/outfuncs.c): pg_depend lacks the built-in ones, and
// pg_get_viewdef takes a lock on every table.
const postgresRelations = `WITH RECURSIVE code(rel, tree) AS (
	SELECT r.ev_class, r.ev_action::pg_catalog.text FROM pg_catalog.pg_rewrite r
		JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
	WHERE r.oid >= 16384 AND r.ev_type = '1' AND c.relkind = 'v'
	UNION ALL
	SELECT l.polrelid, l.polqual::pg_catalog.text FROM pg_catalog.pg_policy l WHERE l.polqual IS NOT NULL
), suspects(oid) AS (
	SELECT p.oid FROM pg_catalog.pg_proc p WHERE ` + postgresVolatile + ` OR p.oid < 16384 AND p.proname IN (@denied@)
), runs(rel, fn) AS (
	SELECT DISTINCT code.rel, s.oid
	FROM code CROSS JOIN LATERAL pg_catalog.regexp_matches(code.tree, ` + postgresCalls + `, 'g') m
		JOIN suspects s ON s.oid = m[1]::pg_catalog.oid
	UNION
	SELECT r.ev_class, runs.fn
	FROM runs
		JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = runs.rel
			AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
		JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.ev_type = '1'
		JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
)
SELECT DISTINCT rn.nspname::pg_catalog.text, c.relname::pg_catalog.text, n.nspname::pg_catalog.text, p.proname::pg_catalog.text, ` + postgresTrusted + `::pg_catalog.text
FROM runs
	JOIN pg_catalog.pg_class c ON c.oid = runs.rel JOIN pg_catalog.pg_namespace rn ON rn.oid = c.relnamespace
	JOIN pg_catalog.pg_proc p ON p.oid = runs.fn JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace`

// postgresForeign are foreign tables, what they are partitions or children of, and
// views over any of these: what they hold is another server's, or one's own files.
const postgresForeign = `WITH RECURSIVE f(rel) AS (
	SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relkind = 'f'
	UNION
	SELECT u.rel FROM f JOIN LATERAL (
		SELECT i.inhparent AS rel FROM pg_catalog.pg_inherits i WHERE i.inhrelid = f.rel
		UNION ALL
		SELECT r.ev_class FROM pg_catalog.pg_depend d
			JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND r.ev_type = '1'
			JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
		WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = f.rel
			AND d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
	) u ON true
)
SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text
FROM f JOIN pg_catalog.pg_class c ON c.oid = f.rel JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace`

func catalogPostgres(r *catalogReader) error {
	err := r.each(postgresFunctions, 5, func(row []cell) {
		r.into.Functions = append(r.into.Functions, classify.CatalogFunction{
			Schema: row[0].text, Name: row[1].text, Harmless: row[2].on(), Trusted: row[3].on(), Field: row[4].on(),
		})
	})
	if err != nil {
		return err
	}
	err = r.each(postgresOperators, 4, func(row []cell) {
		r.into.Operators = append(r.into.Operators, classify.CatalogOperator{
			Symbol:   row[0].text,
			Function: classify.CatalogFunction{Schema: row[1].text, Name: row[2].text, Trusted: row[3].on()},
		})
	})
	if err != nil {
		return err
	}
	denied := "'" + strings.Join(classify.Denied(classify.Postgres), "', '") + "'"
	err = r.each(strings.Replace(postgresRelations, "@denied@", denied, 1), 5, func(row []cell) {
		r.into.Relations = append(r.into.Relations, classify.CatalogRelation{
			Schema: row[0].text, Name: row[1].text,
			Runs: classify.CatalogFunction{Schema: row[2].text, Name: row[3].text, Trusted: row[4].on()},
		})
	})
	if err != nil {
		return err
	}
	return r.each(postgresForeign, 2, func(row []cell) {
		r.into.Relations = append(r.into.Relations, classify.CatalogRelation{Schema: row[0].text, Name: row[1].text, Local: true})
	})
}
