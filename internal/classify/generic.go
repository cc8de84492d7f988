package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// genericTable is the common ground for databases that are not known: what a
// statement is by its leading keyword where PostgreSQL, MySQL and the other SQL
// databases agree. Anything else is unknown, and pins.
var genericTable = table{
	lex.KwSelect: {parse: parseQuery, class: Read},
	lex.KwWith:   {parse: parseQuery, class: Read},
	lex.KwValues: {parse: parseQuery, class: Read},
	lex.KwTable:  {parse: parseQuery, class: Read},

	lex.KwInsert:  {parseWrite, Write, Stamps, reasonWrites},
	lex.KwReplace: {parseWrite, Write, Stamps, reasonWrites},
	lex.KwUpdate:  {parseWrite, Write, Stamps, reasonWrites},
	lex.KwDelete:  {parseWrite, Write, Stamps, reasonWrites},
	lex.KwMerge:   {parseWrite, Write, Stamps, reasonWrites},

	lex.KwCreate:   {parseCreate, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwAlter:    {parseCreate, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwDrop:     {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwTruncate: {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwRename:   {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwGrant:    {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwRevoke:   {parseFixed, DDL, Stamps | EndsTx, reasonDefines},

	lex.KwCall:    {parseRest, Call, callEffects, reasonCall},
	lex.KwDo:      {parseRest, Call, callEffects, reasonCall},
	lex.KwDeclare: {parseRest, Call, callEffects, reasonCall},
	lex.KwExecute: {parseRest, Call, callEffects, reasonCall},

	lex.KwBegin:     {parseBegin, Transaction, OpensTx | EndsTx, reasonTx},
	lex.KwStart:     {parseBegin, Transaction, OpensTx | EndsTx, reasonTx},
	lex.KwCommit:    {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwEnd:       {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwRollback:  {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwAbort:     {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwSavepoint: {parseFixed, Transaction, 0, reasonTx},
	lex.KwRelease:   {parseFixed, Transaction, 0, reasonTx},

	lex.KwLock:   {parseFixed, Lock, Stamps | Pins | EndsTx | Silent, reasonLock},
	lex.KwUnlock: {parseFixed, Lock, Stamps | EndsTx | Silent, reasonLock},

	lex.KwSet:   {parseFixed, Session, Pins | OpensTx | EndsTx | PinsRole | PinsAuth | PinsCustom | EmptiesCache | Silent, reasonSet},
	lex.KwReset: {parseFixed, Session, Pins | EmptiesCache | Silent, reasonSet},

	lex.KwShow:     {parseFixed, Show, 0, reasonLocal},
	lex.KwDescribe: {parseFixed, Show, 0, reasonLocal},
	lex.KwDesc:     {parseFixed, Show, 0, reasonLocal},
	lex.KwExplain:  {parse: parseExplainPostgres},
}

var genericWords = buildGenericWords()

// buildGenericWords: what acts or is local anywhere, and as syntax only what is
// reserved everywhere.
func buildGenericWords() (t wordTable) {
	t.add(acts, actingWords...)
	t.add(opensParen, reservedSyntax...)
	t.add(opensParen, typeWords...)
	t.add(maybeOpens, placedWords...)
	t.add(local, postgresLocal...)
	t.done(&genericTable)
	return t
}
