package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// callEffects are those of code that the text does not show. It may do anything,
// and a replica would run it: a procedure with a privileged definer writes on a
// read-only server, and one that sets READ WRITE lifts the fence.
const callEffects = Stamps | Pins | OpensTx | EndsTx | EmptiesCache | Silent

// Reasons that several statements share.
const (
	reasonWrites   = "writes rows"
	reasonDefines  = "changes definitions"
	reasonServer   = "acts on the server"
	reasonTx       = "transaction control"
	reasonCall     = "runs code that the text does not show"
	reasonPrepared = "prepared statement of the session"
	reasonCursor   = "cursor of the session"
	reasonLock     = "locks tables"
)

// postgresTable is PostgreSQL's decision table: what a statement is by its leading
// keyword. A statement kind is added here, and with it a line in
// testdata/statements.txt.
var postgresTable = table{
	lex.KwSelect: {parse: parseQuery, class: Read},
	lex.KwWith:   {parse: parseQuery, class: Read},
	lex.KwValues: {parse: parseQuery, class: Read},
	lex.KwTable:  {parse: parseQuery, class: Read},

	lex.KwInsert:   {parseWrite, Write, Stamps, reasonWrites},
	lex.KwUpdate:   {parseWrite, Write, Stamps, reasonWrites},
	lex.KwDelete:   {parseWrite, Write, Stamps, reasonWrites},
	lex.KwMerge:    {parseWrite, Write, Stamps, reasonWrites},
	lex.KwCopy:     {parseCopy, Write, Stamps | Silent, "writes a table or a file"},
	lex.KwTruncate: {parseFixed, Write, Stamps, reasonWrites},
	lex.KwRefresh:  {parseFixed, DDL, Stamps, "writes a materialized view"},

	lex.KwCreate:   {parseCreate, DDL, Stamps, reasonDefines},
	lex.KwAlter:    {parseAlter, DDL, Stamps, reasonDefines}, // ALTER SYSTEM: Admin
	lex.KwDrop:     {parseFixed, DDL, Stamps, reasonDefines},
	lex.KwComment:  {parseFixed, DDL, Stamps, reasonDefines},
	lex.KwGrant:    {parseFixed, DDL, Stamps, reasonDefines},
	lex.KwRevoke:   {parseFixed, DDL, Stamps, reasonDefines},
	lex.KwSecurity: {parseFixed, DDL, Stamps, reasonDefines},
	lex.KwImport:   {parseFixed, DDL, Stamps, reasonDefines},
	lex.KwReassign: {parseFixed, DDL, Stamps, reasonDefines},

	lex.KwReindex:    {parseFixed, Admin, Stamps, reasonServer},
	lex.KwCluster:    {parseFixed, Admin, Stamps, reasonServer},
	lex.KwVacuum:     {parseFixed, Admin, Stamps, reasonServer},
	lex.KwAnalyze:    {parseFixed, Admin, Stamps, reasonServer},
	lex.KwAnalyse:    {parseFixed, Admin, Stamps, reasonServer},
	lex.KwCheckpoint: {parseFixed, Admin, Stamps | Silent, reasonServer},

	lex.KwCall: {parseFixed, Call, callEffects, reasonCall},
	lex.KwDo:   {parseFixed, Call, callEffects, reasonCall},

	lex.KwBegin:     {parseBegin, Transaction, OpensTx, reasonTx},
	lex.KwStart:     {parseBegin, Transaction, OpensTx, reasonTx},
	lex.KwCommit:    {parseEnd, Transaction, EndsTx, reasonTx}, // COMMIT PREPARED: stamps
	lex.KwEnd:       {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwRollback:  {parseEnd, Transaction, EndsTx, reasonTx}, // … TO SAVEPOINT: ends nothing
	lex.KwAbort:     {parseEnd, Transaction, EndsTx, reasonTx},
	lex.KwSavepoint: {parseFixed, Transaction, 0, reasonTx},
	lex.KwRelease:   {parseFixed, Transaction, 0, reasonTx},
	lex.KwLock:      {parseFixed, Lock, Stamps | Silent, reasonLock},

	lex.KwSet:     {parse: parseSetPostgres},
	lex.KwReset:   {parseReset, Session, EmptiesCache, reasonSet},
	lex.KwDiscard: {parseDiscard, Session, EmptiesCache | Silent, "discards state of the session"},
	lex.KwLoad:    {parseLoad, Session, Stamps | Pins | EmptiesCache | Silent, "loads a library into the session"},

	lex.KwPrepare:    {parsePrepare, Session, Stamps | Pins | Silent, reasonPrepared},
	lex.KwExecute:    {parseFixed, Session, Stamps, reasonPrepared},
	lex.KwDeallocate: {parseFixed, Session, Stamps | EmptiesCache | Silent, reasonPrepared},

	lex.KwDeclare: {parseDeclare, Session, Stamps, reasonCursor}, // WITH HOLD: pins
	lex.KwFetch:   {parseFixed, Session, Stamps, reasonCursor},
	lex.KwMove:    {parseFixed, Session, Stamps, reasonCursor},
	lex.KwClose:   {parseFixed, Session, Stamps, reasonCursor},

	lex.KwListen:   {parseFixed, Session, Pins, "subscription of the session"},
	lex.KwUnlisten: {parseFixed, Session, Silent, "subscription of the session"},
	lex.KwNotify:   {parseFixed, Write, Stamps, "sends a notification"},

	lex.KwShow:    {parseFixed, Show, 0, reasonSession},
	lex.KwExplain: {parse: parseExplainPostgres},
}

// postgresLocal are relations whose content belongs to one server, or to one
// session; all names that begin with pg_stat_ are, too.
var postgresLocal = []lex.Keyword{
	lex.KwPgStat, lex.KwPgStatio, lex.KwPgLocks, lex.KwPgPreparedStatements, lex.KwPgPreparedXacts,
	lex.KwPgCursors, lex.KwPgSettings, lex.KwPgReplicationSlots, lex.KwPgReplicationOriginStatus,
	lex.KwPgFileSettings, lex.KwPgHbaFileRules, lex.KwPgIdentFileMappings, lex.KwPgShmemAllocations,
	lex.KwPgBackendMemoryContexts, lex.KwPgConfig,
}

var postgresWords = buildPostgresWords()

func buildPostgresWords() (t wordTable) {
	t.add(acts, actingWords...)
	t.add(opensParen, reservedSyntax...)
	t.add(opensParen, typeWords...)
	t.add(maybeOpens, placedWords...)
	t.add(local, postgresLocal...)
	t.add(namesTables, tableWords...)
	t.add(namesTables, typeWords...)
	t.done(&postgresTable)
	return t
}
