package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// adminMySQL are the effects of statements that act on the server. Most of them
// commit first, and a read-only replica runs many.
const adminMySQL = Stamps | EndsTx | Silent

// mysqlTable is the decision table of MySQL and MariaDB: what a statement is by
// its leading keyword. What only one of them knows is an error on the other, so
// that one table does for both. A statement kind is added here, and with it a line
// in testdata/statements.txt.
var mysqlTable = table{
	lex.KwSelect: {parse: parseQuery, class: Read},
	lex.KwWith:   {parse: parseQuery, class: Read},
	lex.KwValues: {parse: parseQuery, class: Read},
	lex.KwTable:  {parse: parseQuery, class: Read},

	lex.KwInsert:  {parseWrite, Write, Stamps, reasonWrites},
	lex.KwReplace: {parseWrite, Write, Stamps, reasonWrites},
	lex.KwUpdate:  {parseWrite, Write, Stamps, reasonWrites},
	lex.KwDelete:  {parseWrite, Write, Stamps, reasonWrites},
	lex.KwLoad:    {parseLoad, Write, Stamps, reasonWrites}, // LOAD INDEX: Admin
	lex.KwImport:  {parseFixed, Write, Stamps | EndsTx, reasonWrites},

	lex.KwCreate:   {parseCreate, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwAlter:    {parseCreate, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwDrop:     {parseDropMySQL, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwRename:   {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwTruncate: {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwGrant:    {parseFixed, DDL, Stamps | EndsTx, reasonDefines},
	lex.KwRevoke:   {parseFixed, DDL, Stamps | EndsTx, reasonDefines},

	lex.KwCall: {parseFixed, Call, callEffects, reasonCall},
	lex.KwDo:   {parseFixed, Call, Stamps | Pins | Silent, reasonCall},
	// Compound statements of MariaDB outside of routines; BEGIN NOT ATOMIC is one.
	lex.KwIf:      {parseRest, Call, callEffects, reasonCall},
	lex.KwCase:    {parseRest, Call, callEffects, reasonCall},
	lex.KwLoop:    {parseRest, Call, callEffects, reasonCall},
	lex.KwWhile:   {parseRest, Call, callEffects, reasonCall},
	lex.KwRepeat:  {parseRest, Call, callEffects, reasonCall},
	lex.KwFor:     {parseRest, Call, callEffects, reasonCall},
	lex.KwDeclare: {parseRest, Call, callEffects, reasonCall},

	lex.KwBegin:     {parseBegin, Transaction, OpensTx | EndsTx, reasonTx},
	lex.KwStart:     {parseStart, Transaction, OpensTx | EndsTx, reasonTx}, // START REPLICA: Admin
	lex.KwCommit:    {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwRollback:  {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwSavepoint: {parseFixed, Transaction, 0, reasonTx},
	lex.KwRelease:   {parseFixed, Transaction, 0, reasonTx},
	lex.KwXa:        {parseXA, Transaction, 0, reasonTx},

	lex.KwLock:   {parseFixed, Lock, Stamps | Pins | EndsTx | Silent, reasonLock},
	lex.KwUnlock: {parseFixed, Lock, Stamps | EndsTx | Silent, reasonLock},
	lex.KwBackup: {parseFixed, Admin, Stamps | Pins | EndsTx | Silent, "locks for a backup"},

	lex.KwSet: {parse: parseSetMySQL},
	lex.KwUse: {parseUse, Session, EmptiesCache, "sets the default database"},

	lex.KwPrepare:    {parsePrepare, Session, Stamps | Pins | Silent, reasonPrepared},
	lex.KwExecute:    {parseFixed, Session, callEffects, "runs a text that is not shown"},
	lex.KwDeallocate: {parseFixed, Session, Stamps | Silent, reasonPrepared},
	lex.KwHandler:    {parseFixed, Session, Stamps | Pins | Silent, "handler of the session"},
	lex.KwGet:        {parseFixed, Session, Pins | Silent, "diagnostics of the session"},
	lex.KwSignal:     {parseFixed, Session, Stamps, "raises a condition"},
	lex.KwResignal:   {parseFixed, Session, Stamps, "raises a condition"},

	lex.KwShow:     {parseShow, Show, 0, reasonLocal},
	lex.KwHelp:     {parse: parseFixed, class: Show},
	lex.KwChecksum: {parse: parseFixed, class: Show},
	lex.KwExplain:  {parse: parseExplainMySQL},
	lex.KwDescribe: {parse: parseExplainMySQL},
	lex.KwDesc:     {parse: parseExplainMySQL},

	lex.KwAnalyze:   {parse: parseAnalyze}, // ANALYZE TABLE, and MariaDB's ANALYZE stmt
	lex.KwOptimize:  {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwRepair:    {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwCheck:     {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwCache:     {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwFlush:     {parseFlush, Admin, adminMySQL, reasonServer},
	lex.KwReset:     {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwKill:      {parseFixed, Admin, Stamps | Silent, reasonServer},
	lex.KwPurge:     {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwChange:    {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwStop:      {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwInstall:   {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwUninstall: {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwClone:     {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwShutdown:  {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwRestart:   {parseFixed, Admin, adminMySQL, reasonServer},
	lex.KwBinlog:    {parseFixed, Admin, adminMySQL, reasonServer},
}

// mysqlSyntax are the words that are syntax before a parenthesis in MySQL and
// MariaDB. Their grammar takes no word that is in the lexer's list for the name
// of a stored function, unless it is quoted or qualified.
var mysqlSyntax = []lex.Keyword{
	lex.KwAgainst, lex.KwBinary, lex.KwConvert, lex.KwDistinctrow, lex.KwDiv, lex.KwIndex, lex.KwKey,
	lex.KwMatch, lex.KwMember, lex.KwOf, lex.KwPartition, lex.KwRegexp, lex.KwRlike, lex.KwRows,
	lex.KwStraightJoin, lex.KwXor, lex.KwSqlNoCache, lex.KwSqlCache, lex.KwSqlBigResult,
	lex.KwSqlSmallResult, lex.KwSqlBufferResult, lex.KwHighPriority, lex.KwSqlCalcFoundRows,
	lex.KwDouble, lex.KwTinyint, lex.KwMediumint, lex.KwVarbinary, lex.KwMod, lex.KwRollup, lex.KwCube,
}

var mysqlWords = buildMySQLWords()

func buildMySQLWords() (t wordTable) {
	t.add(acts, actingWords...)
	t.add(opensParen, reservedSyntax...)
	t.add(opensParen, typeWords...)
	t.add(opensParen, mysqlSyntax...)
	t.add(maybeOpens, placedWords...)
	t.done(&mysqlTable)
	return t
}
