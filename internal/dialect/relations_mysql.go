package dialect

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// mysqlEngines hold what was written to a table under its name, and nothing else.
// Others (MERGE, FEDERATED, CONNECT, SPIDER) reach other tables, or other servers.
var mysqlEngines = map[string]bool{"innodb": true, "myisam": true, "aria": true, "memory": true, "archive": true, "csv": true, "rocksdb": true}

const (
	mysqlNamed = `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ` + mysqlOwn

	mysqlTriggers = `SELECT DISTINCT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS`

	// mysqlSeesTriggers are the tables of which the user would be shown the
	// triggers: % stands for all. What roles grant is not seen.
	mysqlSeesTriggers = `SELECT '%', '%' FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ` + mysqlGrantee + `
UNION SELECT TABLE_SCHEMA, '%' FROM information_schema.SCHEMA_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ` + mysqlGrantee + `
UNION SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLE_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ` + mysqlGrantee

	mysqlGrantee = `CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), ` +
		`'''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`

	mysqlCascades = `SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS ` +
		`WHERE DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION')`
)

func relationsMySQL(r *relationsReader) error {
	shown := make(map[classify.SchemaName]bool)
	err := r.each(mysqlSeesTriggers, 2, func(row []cell) {
		// The name of a schema may be a pattern; one with a wildcard that is not
		// plain underscore is not followed.
		shown[classify.SchemaName{Schema: strings.ReplaceAll(row[0].text, `\`, ""), Name: row[1].text}] = true
	})
	if err != nil {
		return err
	}
	views := make(map[classify.SchemaName]bool)
	err = r.each(mysqlNamed, 4, func(row []cell) {
		name := schemaName(row)
		r.into.Relations = append(r.into.Relations, name)
		if row[2].text == "VIEW" {
			views[name] = true
			return
		}
		if !mysqlEngines[strings.ToLower(row[3].text)] || row[2].text == "SEQUENCE" {
			r.into.ReadsAll = append(r.into.ReadsAll, name)
			r.into.WritesAll = append(r.into.WritesAll, name)
		} else if !shown[name] && !shown[classify.SchemaName{Schema: name.Schema, Name: "%"}] && !shown[classify.SchemaName{Schema: "%", Name: "%"}] {
			r.into.WritesAll = append(r.into.WritesAll, name)
		}
	})
	if err != nil {
		return err
	}
	err = r.each(mysqlTriggers, 2, func(row []cell) { r.into.WritesAll = append(r.into.WritesAll, schemaName(row)) })
	if err != nil {
		return err
	}
	err = r.each(mysqlCascades, 4, func(row []cell) {
		r.into.Links = append(r.into.Links, classify.SchemaLink{From: schemaName(row), To: schemaName(row[2:]), Write: true})
	})
	if err != nil {
		return err
	}
	err = r.each(mysqlViews, 3, func(row []cell) {
		delete(views, schemaName(row))
		r.into.Views = append(r.into.Views, classify.SchemaView{SchemaName: schemaName(row), Text: row[2].text})
	})
	for name := range views {
		r.into.Views = append(r.into.Views, classify.SchemaView{SchemaName: name}) // shown by name only
	}
	return err
}
