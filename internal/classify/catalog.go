package classify

// Catalog is what a database's own catalog tells that no table of this package can
// know. The reader fills it in; [NewDefinitions] makes of it what [ClassifyWith] needs.
// Names are as the catalog has them, without quotes.
type Catalog struct {
	Functions []CatalogFunction
	Operators []CatalogOperator
	Relations []CatalogRelation
}

// CatalogFunction is all functions of one name in one schema: what it says holds
// for each of them.
type CatalogFunction struct {
	Schema, Name string
	// Harmless: each is declared not to write (PostgreSQL: STABLE or IMMUTABLE,
	// and of an aggregate its parts too; MySQL: NO SQL or READS SQL DATA).
	Harmless bool
	// Trusted: each is built in or belongs to an extension. The tables of this
	// package, which know such functions by name, go before the declaration.
	Trusted bool
	// Field: one of them can be called in the way of a field, as in row.name.
	Field bool
}

// CatalogOperator is an operator whose function is not declared harmless.
type CatalogOperator struct {
	Symbol   string
	Function CatalogFunction
}

// CatalogRelation is a relation of which reading does more than reading, or may.
// A relation may be listed several times.
type CatalogRelation struct {
	Schema, Name string
	// Runs is a function, not declared harmless, that reading the relation runs:
	// a view's, or a row security policy's. Without a name, there is none.
	Runs CatalogFunction
	// Text is the query of a view, where the catalog does not tell what it runs.
	Text string
	// Local: its content is not replicated, or not by this cluster.
	Local bool
}

// Redefines reports whether text, whose verdict is v, may change what a [Catalog]
// tells. It errs on the side of yes; what it cannot see is DDL inside a routine.
func Redefines(v Verdict, text string) bool {
	switch v.Class {
	case DDL:
		return hasWord(text, definedObjects)
	case Multi, Call, Session: // a block, or a text to be prepared and run
		return v.Effect&Stamps != 0 && hasWord(text, definingVerbs) && hasWord(text, definedObjects)
	}
	return false
}

// Reshapes reports whether text, whose verdict is v, may change what a [Schema]
// tells: any definition may. It errs on the side of yes, like [Redefines], and does
// not see DDL inside a routine either. Temporary tables are their session's own.
func Reshapes(v Verdict, text string) bool {
	switch v.Class {
	case DDL:
		return v.Effect&TempObject == 0 && v.Keyword != "TRUNCATE"
	case Multi, Call, Session:
		return v.Effect&Stamps != 0 && hasWord(text, definingVerbs)
	}
	return false
}

// definedObjects are the words of which one stands in every statement that defines
// a function, an operator, a view, or a relation that is not replicated. RENAME
// may give a known name to something else, LIKE a new name to a MEMORY table.
var definedObjects = wordSet("function", "procedure", "routine", "aggregate", "operator", "extension",
	"view", "rule", "policy", "security", "schema", "database", "owned", "cast", "package", "foreign",
	"engine", "memory", "rename", "like", "inherit", "attach", "inherits", "partition")

var definingVerbs = wordSet("create", "alter", "drop", "rename", "import", "replace")

func wordSet(words ...string) map[string]struct{} {
	set := make(map[string]struct{}, len(words))
	for _, w := range words {
		set[w] = struct{}{}
	}
	return set
}

func hasWord(text string, set map[string]struct{}) bool {
	var buf [maxFuncName]byte
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		if end == i {
			i++
			continue
		}
		if end-i <= len(buf) {
			if _, ok := set[string(appendFold(buf[:0], text[i:end]))]; ok {
				return true
			}
		}
		i = end
	}
	return false
}
