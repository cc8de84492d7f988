package classify

import "strings"

// Class is what a text is, as a whole. It decides the route; Effect decides
// what happens to the connection afterwards.
type Class uint8

const (
	// Unknown is not proven to be anything. It runs on the primary and counts
	// as a write there: a SELECT with a function that is not known to be
	// harmless is one, and so is a statement that no table knows.
	Unknown Class = iota
	// Empty is blanks, comments and semicolons.
	Empty
	// Read is a proven read: it changes nothing, locks nothing, and its answer
	// depends on replicated data only.
	Read
	// Write changes rows or files.
	Write
	// DDL changes definitions.
	DDL
	// Lock takes or gives up locks: locking reads, LOCK TABLE, advisory locks.
	Lock
	// Session reads or changes the state of the session: SET, PREPARE, LISTEN,
	// cursors, user variables.
	Session
	// Transaction opens, ends or shapes a transaction.
	Transaction
	// Call runs code that the text does not show: CALL, DO, compound statements.
	Call
	// Admin acts on the server: FLUSH, KILL, VACUUM, ALTER SYSTEM.
	Admin
	// Show asks for metadata, settings or a plan.
	Show
	// Multi is several statements, of which at least one is neither a read nor
	// empty.
	Multi
)

var classNames = [...]string{
	Unknown:     "unknown",
	Empty:       "empty",
	Read:        "read",
	Write:       "write",
	DDL:         "ddl",
	Lock:        "lock",
	Session:     "session",
	Transaction: "transaction",
	Call:        "call",
	Admin:       "admin",
	Show:        "show",
	Multi:       "multi",
}

// String returns the class in lower case, or "invalid".
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

// Effect is a set of things that a text does to its connection, its session
// or the data. The zero value is "nothing".
type Effect uint32

const (
	// Stamps: the floor of later reads rises when the text returns. Everything
	// that is not a proven read does, but for locking reads, SET, SHOW, LISTEN
	// and advisory locks, which change no data.
	Stamps Effect = 1 << iota
	// Pins: the text leaves state in the session that the closed list of
	// replayed variables does not cover, so reads stay on the primary's
	// connection until check-in.
	Pins
	// PinsRole: SET ROLE was run; reads stay on the primary's connection as
	// long as that connection has the role.
	PinsRole
	// PinsAuth: likewise for SET SESSION AUTHORIZATION.
	PinsAuth
	// PinsCustom: likewise for custom settings (app.tenant), on which row
	// security policies depend.
	PinsCustom
	// UnpinsRole: the role is the log-in role again.
	UnpinsRole
	// UnpinsAuth: the session's user is the log-in user again.
	UnpinsAuth
	// UnpinsCustom: no custom setting is left.
	UnpinsCustom
	// OpensTx: a transaction may be open afterwards.
	OpensTx
	// EndsTx: a transaction that was open before may be over afterwards.
	EndsTx
	// TempObject: a temporary table may exist afterwards.
	TempObject
	// EmptiesCache: prepared statements of this connection must be prepared
	// again, because they were, or may have been, dropped or planned under
	// settings that hold no more.
	EmptiesCache
	// Silent: a replica would run the text without an error although it must
	// not run there. Only the classifier stops these.
	Silent
	// ReadOnlyTx: the transaction that the text opens is READ ONLY.
	ReadOnlyTx
)

var effectNames = [...]string{
	"stamps", "pins", "pins-role", "pins-auth", "pins-custom",
	"unpins-role", "unpins-auth", "unpins-custom", "opens-tx", "ends-tx",
	"temp-object", "empties-cache", "silent", "read-only-tx",
}

// String returns the names of the effects, separated by blanks; "" for none.
func (e Effect) String() string { return setString(uint32(e), effectNames[:]) }

// Vars is a set of session variables that are replayed on replica connections
// instead of pinning. The list is closed: a text that sets any other variable
// pins. The zero value is "none".
type Vars uint16

const (
	// TimeZone is PostgreSQL's TimeZone and MySQL's time_zone.
	TimeZone Vars = 1 << iota
	// DateStyle is PostgreSQL's DateStyle.
	DateStyle
	// IntervalStyle is PostgreSQL's IntervalStyle.
	IntervalStyle
	// SearchPath is PostgreSQL's search_path, also by SET SCHEMA.
	SearchPath
	// StatementTimeout is PostgreSQL's statement_timeout.
	StatementTimeout
	// LockTimeout is PostgreSQL's lock_timeout.
	LockTimeout
	// Names is the client's character set and collation: MySQL's SET NAMES
	// and SET CHARACTER SET.
	Names
	// SQLMode is MySQL's sql_mode, which also changes how texts are read.
	SQLMode
	// Database is MySQL's default database, by USE.
	Database
)

var varNames = [...]string{
	"TimeZone", "DateStyle", "IntervalStyle", "search_path",
	"statement_timeout", "lock_timeout", "NAMES", "sql_mode", "database",
}

// String returns the names of the variables, separated by blanks; "" for none.
func (v Vars) String() string { return setString(uint32(v), varNames[:]) }

// Hint is a wish that stands in a comment of the text:
//
//	SELECT /* replicated:primary */ name FROM users
type Hint uint8

const (
	// NoHint: the text has no hint.
	NoHint Hint = iota
	// HintPrimary asks for the primary.
	HintPrimary
	// HintReplica allows a replica.
	HintReplica
)

var hintNames = [...]string{NoHint: "none", HintPrimary: "primary", HintReplica: "replica"}

// String returns "none", "primary", "replica", or "invalid".
func (h Hint) String() string {
	if int(h) < len(hintNames) {
		return hintNames[h]
	}
	return "invalid"
}

// Verdict is what Classify found. It is a plain value: comparable, and its
// strings are static.
//
// The numbers fill 16 bytes, and so does each string, because a verdict is copied in
// pieces of that size, and a piece that was not written whole has to be waited for.
type Verdict struct {
	// Class is what the text is, as a whole.
	Class Class
	// Effect is what it does to its connection.
	Effect Effect
	// Vars are the replayed session variables that it sets or resets.
	Vars Vars
	// Hint is the wish that stands in one of its comments. If comments
	// contradict one another, HintPrimary wins.
	Hint Hint
	// Cacheable reports whether the prepared form of the text may be kept and
	// used again. It is true only for a single SELECT, INSERT, UPDATE, DELETE
	// or the like whose meaning is not fixed when it is prepared.
	Cacheable bool
	// Params is the number of placeholders: the highest n of $n, or the count
	// of ?. It is 0 for none and -1 where the text does not tell.
	Params int32
	// Keyword is the leading keyword in upper case ("SELECT"), a static string;
	// "" for an empty text and "?" where no keyword of the tables leads.
	Keyword string
	// Reason says in static words why the text is not a proven read; "" for
	// one.
	Reason string
}

// Replica reports whether the text may run on a replica: it is a proven read,
// or a SHOW, EXPLAIN or transaction that is right wherever it runs.
func (v Verdict) Replica() bool {
	return v.Reason == "" && (v.Class == Read || v.Class == Show || v.Class == Empty) && v.Effect == 0
}

func setString(set uint32, names []string) string {
	var b strings.Builder
	for i, n := range names {
		if set&(1<<i) != 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(n)
		}
	}
	return b.String()
}
