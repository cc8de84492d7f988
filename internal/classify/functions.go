package classify

import "strings"

// funcKind is what a call of a function does, as far as routing is concerned.
// The zero value is fnUnknown, which nobody may take for harmless.
type funcKind uint8

const (
	// fnUnknown: in no table. A user function, or one of a server or an
	// extension newer than the tables; it may do anything.
	fnUnknown funcKind = iota
	// fnHarmless: built in, or of a well-known extension; it changes nothing,
	// and its answer is replicated data, a pure value, or one that is as right
	// on a replica as on the primary (random, now, sizes).
	fnHarmless
	// fnSequence: nextval, setval and their like, which write.
	fnSequence
	// fnAdvisory: takes, gives up or asks for advisory or named locks. Each
	// server has its own, so one taken on a replica protects nothing.
	fnAdvisory
	// fnSession: the answer belongs to the session on the primary
	// (LAST_INSERT_ID, currval, pg_backend_pid).
	fnSession
	// fnSetConfig: set_config, a SET in the shape of a function.
	fnSetConfig
	// fnPins: leaves state in the session (setseed, pg_export_snapshot).
	fnPins
	// fnWrite: writes data or log, sends a message, or assigns a transaction
	// ID, which is a write too.
	fnWrite
	// fnServer: acts on, or tells of, the one server that runs it: its files,
	// slots, processes, log position.
	fnServer
	// fnText: runs SQL text that it is given, on this server or another.
	fnText

	funcKindEnd
)

var funcKindNames = [...]string{
	fnUnknown:   "unknown",
	fnHarmless:  "harmless",
	fnSequence:  "sequence",
	fnAdvisory:  "advisory",
	fnSession:   "session",
	fnSetConfig: "set-config",
	fnPins:      "pins",
	fnWrite:     "write",
	fnServer:    "server",
	fnText:      "text",
}

// String returns the kind in lower case, or "invalid".
func (k funcKind) String() string {
	if int(k) < len(funcKindNames) {
		return funcKindNames[k]
	}
	return "invalid"
}

// servers is a set of server kinds, the ones on which a group of functions
// exists.
type servers uint8

const (
	onPostgres servers = 1 << iota
	onMySQL
	onMariaDB

	onMySQLs = onMySQL | onMariaDB
	onAll    = onPostgres | onMySQL | onMariaDB
)

// funcGroup is some functions that are of one kind for one reason. To make a
// function known, add its name to the group that it belongs to, or a group to
// one of the tables in funcTables. No name may stand in two groups of a server.
type funcGroup struct {
	kind  funcKind
	on    servers
	why   string // the reason, and where it is written
	names string // in lower case, between blanks
}

// funcTables are all groups, in the order in which a reader looks for a name:
//
//   - functions_postgres.go: what PostgreSQL's catalog does not tell, by hand
//   - functions_postgres_catalog.go: what it tells, written by gen
//   - functions_extensions.go: extensions of PostgreSQL, by hand
//   - functions_mysql.go: MySQL and MariaDB, by hand
//
// functions_generic.go picks from them what is harmless everywhere.
var funcTables = [...][]funcGroup{
	postgresGroups,
	postgresCatalogGroups,
	extensionGroups,
	mysqlGroups,
}

// dialectCount is the number of dialects that have functions.
const dialectCount = int(AnyMySQL) + 1

// funcEntry is what each dialect makes of one name.
type funcEntry struct {
	name  string
	short uint64 // shortWord of a name of less than eight bytes
	kinds [dialectCount]funcKind
}

// funcSet is a hash table of names, open-addressed and never more than half
// full, so that one or two probes answer. It is filled when the program starts,
// in a fraction of a millisecond, and constant from then on. A table hashed by
// a generator would spare that, but nobody could check it by reading.
type funcSet struct {
	entries []funcEntry
	index   [funcSlots]uint16 // 1 + an index in entries; 0 is free
}

const funcSlots = 1 << 13

var funcs = newFuncSet(funcTables[:])

func newFuncSet(tables [][]funcGroup) *funcSet {
	s := &funcSet{entries: make([]funcEntry, 0, funcSlots/2)}
	for _, groups := range tables {
		for _, g := range groups {
			for _, name := range strings.Fields(g.names) {
				e := s.add(name)
				if g.on&onPostgres != 0 {
					e.kinds[Postgres] = g.kind
				}
				if g.on&onMySQL != 0 {
					e.kinds[MySQL] = g.kind
				}
				if g.on&onMariaDB != 0 {
					e.kinds[MariaDB] = g.kind
				}
			}
		}
	}
	for i := range s.entries {
		k := &s.entries[i].kinds
		k[AnyMySQL] = onBoth(k[MySQL], k[MariaDB])
		k[Generic] = denied(k[Postgres], k[AnyMySQL])
	}
	for _, name := range strings.Fields(genericNames) {
		k := &s.add(name).kinds
		k[Generic] = onBoth(k[Postgres], k[AnyMySQL])
	}
	return s
}

// onBoth is what holds whichever of two servers it is: harmless only if it is
// on both, denied if it is on either.
func onBoth(a, b funcKind) funcKind {
	if a == fnHarmless && b == fnHarmless {
		return fnHarmless
	}
	return denied(a, b)
}

// denied is the first of two kinds that is neither unknown nor harmless, else
// fnUnknown.
func denied(a, b funcKind) funcKind {
	if a > fnHarmless {
		return a
	}
	if b > fnHarmless {
		return b
	}
	return fnUnknown
}

// lookup tells the kind of the function of that name, in any case, under d.
// The name is one part of a name, without quotes; whether quotes or a schema
// before it make it another function is for the caller to know. It allocates
// nothing and may be called from any goroutine.
//
// Under AnyMySQL the answer holds on both servers: harmless only where both
// have it so, denied where either has. Under Generic it is harmless only if it
// is one of genericNames, and denied where any server has it so.
func lookup(d Dialect, name string) funcKind {
	e := funcs.find(name)
	if e == nil || int(d) >= dialectCount {
		return fnUnknown
	}
	return e.kinds[d]
}

func (s *funcSet) find(name string) *funcEntry {
	if n := len(name); n < 8 {
		word := lowerWord(shortWord(name))
		for i := mixWord(uint64(n), word) % funcSlots; s.index[i] != 0; i = (i + 1) % funcSlots {
			if e := &s.entries[s.index[i]-1]; e.short == word && len(e.name) == n {
				return e
			}
		}
		return nil
	}
	for i := hashFold(name) % funcSlots; s.index[i] != 0; i = (i + 1) % funcSlots {
		if e := &s.entries[s.index[i]-1]; equalFold(e.name, name) {
			return e
		}
	}
	return nil
}

func (s *funcSet) add(name string) *funcEntry {
	if e := s.find(name); e != nil {
		return e
	}
	if len(s.entries) == funcSlots/2 {
		panic("BUG: funcSlots is too small")
	}
	i := hashFold(name) % funcSlots
	for s.index[i] != 0 {
		i = (i + 1) % funcSlots
	}
	e := funcEntry{name: name}
	if len(name) < 8 {
		e.short = shortWord(name)
	}
	s.entries = append(s.entries, e)
	s.index[i] = uint16(len(s.entries))
	return &s.entries[len(s.entries)-1]
}

// Denied returns the names of the functions that the tables hold for anything but
// harmless under d, in small letters.
func Denied(d Dialect) (names []string) {
	for i := range funcs.entries {
		if e := &funcs.entries[i]; int(d) < dialectCount && e.kinds[d] > fnHarmless {
			names = append(names, e.name)
		}
	}
	return names
}
