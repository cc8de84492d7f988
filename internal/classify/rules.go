package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// rule is what a table says of the statements that a keyword leads.
type rule struct {
	// parse says which part of this package looks at the rest of the statement.
	parse parse
	// class, effect and reason are what the statement is unless parse finds
	// something else.
	class  Class
	effect Effect
	reason string
}

// table has the rule of each leading keyword. A keyword without one leads no
// statement that the dialect knows.
type table [lex.NumKeywords]rule

// parse names the way in which a statement is looked at.
type parse uint8

const (
	// parseNone: no statement begins with the word.
	parseNone parse = iota
	// parseFixed: the rule says it all, but for effects of functions.
	parseFixed
	// parseQuery: SELECT and its like, a read unless the body says otherwise.
	parseQuery
	// parseWrite: INSERT and its like, a write whatever the body says.
	parseWrite
	// parseRest: may hold semicolons, and takes the rest of the text.
	parseRest

	parseCreate
	parseBegin
	parseEnd
	parsePrepare
	parseCopy
	parseAlter
	parseDeclare
	parseDiscard
	parseReset
	parseSetPostgres
	parseExplainPostgres

	parseXA
	parseStart
	parseDropMySQL
	parseLoad
	parseFlush
	parseAnalyze
	parseShow
	parseSetMySQL
	parseUse
	parseExplainMySQL
)
