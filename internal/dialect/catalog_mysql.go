package dialect

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// The schemas of the server itself are left out: what their functions and views
// tell is the one server's, and the classifier knows them by name.
const mysqlOwn = `('mysql', 'sys', 'information_schema', 'performance_schema')`

// Only what the user has a privilege for is listed; the rest is not known. That a
// function reads only is its author's word: the server does not look. CONTAINS SQL
// is what it writes where nothing was said, and says nothing.
const (
	mysqlFunctions = `SELECT ROUTINE_SCHEMA, ROUTINE_NAME, ROUTINE_TYPE, SQL_DATA_ACCESS FROM information_schema.ROUTINES ` +
		`WHERE ROUTINE_TYPE <> 'PROCEDURE' AND ROUTINE_SCHEMA NOT IN ` + mysqlOwn

	// The text is empty for who may not SHOW VIEW.
	mysqlViews = `SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS ` +
		`WHERE TABLE_SCHEMA NOT IN ` + mysqlOwn

	// A MEMORY table is empty on a replica that has been restarted.
	mysqlMemory = `SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ` +
		`WHERE ENGINE = 'MEMORY' AND TABLE_SCHEMA NOT IN ` + mysqlOwn
)

func catalogMySQL(r *catalogReader) error {
	packages := make(map[string]bool)
	err := r.each(mysqlFunctions, 4, func(row []cell) {
		if strings.HasPrefix(row[2].text, "PACKAGE") {
			packages[strings.ToLower(row[1].text)] = true
			return
		}
		r.into.Functions = append(r.into.Functions, classify.CatalogFunction{
			Schema: row[0].text, Name: row[1].text,
			Harmless: row[3].text == "NO SQL" || row[3].text == "READS SQL DATA",
		})
	})
	if err != nil {
		return err
	}
	for i := range r.into.Functions {
		// MariaDB: name.f may be a package's, of which nothing is known.
		if f := &r.into.Functions[i]; packages[strings.ToLower(f.Schema)] {
			f.Harmless = false
		}
	}
	err = r.each(mysqlViews, 3, func(row []cell) {
		r.into.Relations = append(r.into.Relations, classify.CatalogRelation{Schema: row[0].text, Name: row[1].text, Text: row[2].text})
	})
	if err != nil {
		return err
	}
	return r.each(mysqlMemory, 2, func(row []cell) {
		r.into.Relations = append(r.into.Relations, classify.CatalogRelation{Schema: row[0].text, Name: row[1].text, Local: true})
	})
}
