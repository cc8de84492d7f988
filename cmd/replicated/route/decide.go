package route

import (
	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/internal/classify"
)

// decision is where a statement of an input goes.
type decision struct {
	replicated.Explanation
	// replica and why are Explanation's Route and Reason, unless the session has
	// something against it.
	replica bool
	why     string
	// disguised: it begins like a read, and writes, locks or changes the session.
	disguised bool
}

const (
	whyInTx         = "read inside a transaction"
	whyInReadOnlyTx = "read inside a read-only transaction begun by text"
	whyHeld         = "read behind SET ROLE or a custom setting"
	whyCutOff       = "the server kept only the beginning of the text"
)

// decider decides, statement by statement. With sessions it remembers what those
// have open, as the driver does.
type decider struct {
	dialect  classify.Dialect
	name     string // the dialect's
	sessions map[string]*session
}

// session is a connection in a log.
type session struct {
	inTx     bool
	readOnly bool // … and it is READ ONLY
	held     classify.Effect

	// last is where the time of the last statement belongs, if it is not known yet.
	last *group
}

// maxSessions bounds what is remembered. Logs in which sessions do not say that
// they end may have more; all are forgotten then.
const maxSessions = 100_000

// holding are the effects for which a session stays on the primary until it ends
// or takes them back.
const holding = classify.PinsRole | classify.PinsAuth | classify.PinsCustom

func newDecider(d classify.Dialect, sessions bool) *decider {
	x := &decider{dialect: d, name: d.String()}
	if sessions {
		x.sessions = make(map[string]*session)
	}
	return x
}

// session returns what is known of a session, or nil if sessions are not followed.
func (x *decider) session(name string) *session {
	if x.sessions == nil || name == "" {
		return nil
	}
	s := x.sessions[name]
	if s == nil {
		if len(x.sessions) >= maxSessions {
			clear(x.sessions)
		}
		s = new(session)
		x.sessions[name] = s
	}
	return s
}

// ended forgets a session, or all if it has no name.
func (x *decider) ended(name string) {
	if name == "" {
		clear(x.sessions)
	} else {
		delete(x.sessions, name)
	}
}

func (x *decider) decide(e *entry) (decision, error) {
	ex, err := replicated.Explain(x.name, e.text)
	if err != nil {
		return decision{}, err
	}
	d := decision{Explanation: ex, replica: ex.Route == replicated.RoleReplica, why: ex.Reason}
	if e.cutOff && d.replica {
		// A locking clause may have stood in the rest.
		d.replica, d.why = false, whyCutOff
	}
	d.disguised = !d.replica && readsByItsWord(ex.Keyword) && ex.Why != replicated.ReasonAsked && ex.Class != "read" && (ex.Class != "show" || ex.Write)
	s := x.session(e.session)
	if s == nil {
		return d, nil
	}
	if d.replica {
		switch {
		case s.inTx && s.readOnly:
			d.replica, d.why = false, whyInReadOnlyTx
		case s.inTx:
			d.replica, d.why = false, whyInTx
		case s.held != 0:
			d.replica, d.why = false, whyHeld
		}
	}
	s.after(classify.Classify(x.dialect, e.text))
	return d, nil
}

// after notes what a statement leaves behind. Those that only may open or end a
// transaction are taken not to: a log does not tell, and the driver knows from the
// server.
func (s *session) after(v classify.Verdict) {
	if v.Class == classify.Transaction || v.Class == classify.DDL {
		switch {
		case v.Class == classify.Transaction && v.Effect&classify.OpensTx != 0:
			s.inTx, s.readOnly = true, v.Effect&classify.ReadOnlyTx != 0
		case v.Effect&classify.EndsTx != 0:
			s.inTx = false
		}
	}
	if v.Effect&classify.UnpinsRole != 0 {
		s.held &^= classify.PinsRole
	}
	if v.Effect&classify.UnpinsAuth != 0 {
		s.held &^= classify.PinsAuth
	}
	if v.Effect&classify.UnpinsCustom != 0 {
		s.held &^= classify.PinsCustom
	}
	s.held |= v.Effect & holding
}

// readsByItsWord reports whether a statement that begins so is one that people,
// and routers that look at the first word, take for a read.
func readsByItsWord(keyword string) bool {
	switch keyword {
	case "SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC":
		return true
	}
	return false
}
