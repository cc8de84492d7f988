package classify

// fact is a set of things that the body of a statement was seen to hold.
type fact uint32

const (
	factModifies   fact = 1 << iota // INSERT, UPDATE, DELETE or MERGE inside
	factInto                        // SELECT … INTO a table, file or variable
	factIntoTemp                    // … INTO a temporary table
	factOutfile                     // … INTO a file of the server
	factSequence                    // advances a sequence
	factWrites                      // a function that writes or sends
	factUnknown                     // a function that no table knows
	factText                        // a function that runs SQL text
	factOperator                    // OPERATOR(schema.op)
	factUnbalanced                  // parentheses that do not match
	factAdvisory                    // advisory and named locks
	factLocks                       // FOR UPDATE and its like
	factShares                      // … in the forms that a read-only MySQL grants
	factConfig                      // set_config
	factConfigKeep                  // set_config that outlives the transaction
	factPins                        // a function that changes the session
	factSession                     // a function whose answer is the session's
	factFoundRows                   // SQL_CALC_FOUND_ROWS
	factAssigns                     // @x := …
	factUserVar                     // @x
	factServer                      // a function of one server
	factSysVarOwn                   // @@x that is the session's own
	factSysVar                      // @@x
	factLocal                       // a relation of one server
	factPgTemp                      // pg_temp.x
	factHold                        // the word HOLD: a cursor that outlives its transaction
	factView                        // a relation, reading which runs functions that may write
)

// meaning is what a fact makes of a query. The first that holds gives class and
// reason; the effects of all hold.
type meaning struct {
	fact   fact
	class  Class
	effect Effect
	reason string
}

var meanings = [...]meaning{
	{factModifies, Write, Stamps, "data-modifying WITH"},
	{factOutfile, Write, Stamps | Silent, "writes a file on the server"},
	{factAssigns, Session, Pins | Silent, "assigns a user variable"},
	{factInto, Write, Stamps, "SELECT INTO"},
	{factIntoTemp, Write, Stamps | Pins | TempObject, "SELECT INTO"},
	{factSequence, Write, Stamps, "advances a sequence"},
	{factWrites, Write, Stamps, "function that writes"},
	{factText, Unknown, Stamps, "function that runs SQL text"},
	{factUnknown, Unknown, Stamps, "function not known to be harmless"},
	{factOperator, Unknown, Stamps, "operator not known to be harmless"},
	{factView, Unknown, Stamps, "relation that runs a function not known to be harmless"},
	{factUnbalanced, Unknown, Stamps, "parentheses do not match"},
	{factAdvisory, Lock, Pins | Silent, "advisory or named lock"},
	{factLocks, Lock, 0, "locking clause"},
	{factShares, Lock, Silent, "locking clause"},
	{factConfig, Session, Pins | EmptiesCache | Silent, "function that changes the session"},
	{factConfigKeep, Session, PinsCustom, "function that changes the session"},
	{factPins, Session, Pins | Silent, "function that changes the session"},
	{factSession, Session, Silent, "its answer belongs to the session"},
	{factFoundRows, Session, Silent, "SQL_CALC_FOUND_ROWS"},
	{factUserVar, Session, Silent, "user variable"},
	{factServer, Admin, Stamps | Silent, "function of one server"},
	{factSysVarOwn, Session, Silent, "its answer belongs to the session"},
	{factSysVar, Show, 0, "its answer belongs to the session"},
	{factLocal, Show, 0, "its answer belongs to one server"},
	{factPgTemp, Show, 0, "temporary schema"},
}

// lasting are the effects that a function or a variable has on the connection
// whatever the statement is that holds it.
const lasting = Pins | PinsCustom | EmptiesCache

// idleInWrites are the facts that change nothing of what a write is: those without
// a lasting effect, and that do not keep it from being prepared.
var idleInWrites = func() (f fact) {
	for _, m := range meanings {
		if m.effect&lasting == 0 {
			f |= m.fact
		}
	}
	return f &^ (factUserVar | factUnbalanced)
}()

// query makes a result of a query with the facts f.
func query(f fact) result {
	if f == 0 {
		return result{class: Read}
	}
	var r result
	for i := range meanings {
		m := &meanings[i]
		if f&m.fact == 0 {
			continue
		}
		if r.reason == "" {
			r.class, r.reason = m.class, m.reason
		}
		r.effect |= m.effect
	}
	if r.reason == "" {
		r.class = Read
	}
	return r
}

// sideEffects returns what the facts do to the connection in a statement that is
// no query.
func sideEffects(f fact) Effect {
	if f == 0 {
		return 0
	}
	return query(f).effect & lasting
}
