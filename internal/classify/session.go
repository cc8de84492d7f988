package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// declare takes PostgreSQL's cursors: one WITH HOLD outlives its transaction.
func (w *walker) declare(ru *rule) result {
	w.body(0)
	r := w.fixed(ru)
	if w.facts&factHold != 0 {
		r.effect |= Pins | Silent
	}
	return r
}

// postgresVars are the variables that PostgreSQL has of the closed list.
const postgresVars = TimeZone | DateStyle | IntervalStyle | SearchPath | StatementTimeout | LockTimeout

// discard takes DISCARD.
func (w *walker) discard(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	if w.kw == lex.KwAll {
		r.vars = postgresVars
		r.effect |= UnpinsRole | UnpinsAuth | UnpinsCustom
	}
	w.body(0)
	return r
}

// reset takes RESET. A variable that is reset is as a new connection has it, so
// that nothing pins.
func (w *walker) reset(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	switch w.name() {
	case lex.KwAll:
		if w.k == lex.Word {
			r.vars = postgresVars
			r.effect |= UnpinsCustom
		}
	case lex.KwRole:
		r.effect |= UnpinsRole
	case lex.KwSession, lex.KwSessionAuthorization:
		r.effect |= UnpinsAuth | UnpinsRole
	case lex.KwTime:
		r.vars = TimeZone
	default:
		name := w.name()
		if w.next(); !w.lx.Dotted {
			r.vars = postgresVar(name)
		}
	}
	w.body(0)
	return r
}

// postgresVar returns the variable of the closed list that name is.
func postgresVar(name lex.Keyword) Vars {
	switch name {
	case lex.KwTimezone:
		return TimeZone
	case lex.KwDatestyle:
		return DateStyle
	case lex.KwIntervalstyle:
		return IntervalStyle
	case lex.KwSearchPath:
		return SearchPath
	case lex.KwStatementTimeout:
		return StatementTimeout
	case lex.KwLockTimeout:
		return LockTimeout
	}
	return 0
}

const (
	reasonSet     = "sets a session variable"
	reasonSetTx   = "transaction control"
	reasonSetRole = "sets the role"
)

// setPostgres takes PostgreSQL's SET.
func (w *walker) setPostgres() result {
	r := result{class: Session, effect: EmptiesCache, reason: reasonSet}
	w.next()
	local := false
	switch w.kw {
	case lex.KwLocal:
		// A variable of this name does not exist.
		local = true
		w.next()
	case lex.KwSession:
		switch _, kw := w.peek(); kw {
		case lex.KwAuthorization:
			w.next()
			r.effect |= w.setAuth()
			r.reason = reasonSetRole
			return r
		case lex.KwCharacteristics:
			w.body(0)
			r.effect |= Pins
			return r
		}
		w.next()
	}
	switch w.kw {
	case lex.KwTransaction, lex.KwConstraints:
		w.body(0)
		return result{class: Transaction, reason: reasonSetTx}
	case lex.KwSession: // SET LOCAL SESSION AUTHORIZATION
		w.next()
		r.effect |= w.setAuth()
	default:
		r.effect, r.vars = w.setVariable(r.effect)
	}
	if local {
		// It is undone with the transaction, and does nothing outside of one.
		return result{class: Transaction, effect: EmptiesCache, reason: reasonSetTx}
	}
	if r.effect&(PinsRole|PinsAuth|UnpinsRole) != 0 {
		r.reason = reasonSetRole
	}
	r.effect |= sideEffects(w.facts)
	return r
}

// setAuth takes the rest of SET SESSION AUTHORIZATION; the current token is the
// second word.
func (w *walker) setAuth() Effect {
	w.next()
	kw := w.kw
	w.body(0)
	if kw == lex.KwDefault {
		return UnpinsAuth | UnpinsRole
	}
	return PinsAuth
}

// setVariable takes the rest of a SET from the name on.
func (w *walker) setVariable(e Effect) (Effect, Vars) {
	name := w.name()
	quoted := w.k != lex.Word
	custom := quoted && hasDot(w.lx.Text())
	w.next()
	for w.lx.Dotted && !w.atEnd() {
		custom = true
		w.next()
	}
	if w.k == lex.Op || w.kw == lex.KwTo {
		w.next() // = or TO
	}
	toDefault := w.kw == lex.KwDefault
	value := w.value()
	w.body(0)
	switch {
	case custom && toDefault:
		return e, 0
	case custom:
		return e | PinsCustom, 0
	case name == lex.KwRole:
		if toDefault || value == lex.KwNone {
			return e | UnpinsRole, 0
		}
		return e | PinsRole, 0
	case name == lex.KwSessionAuthorization:
		if toDefault {
			return e | UnpinsAuth | UnpinsRole, 0
		}
		return e | PinsAuth, 0
	case !quoted && name == lex.KwTime:
		return e, TimeZone // TIME ZONE
	case !quoted && name == lex.KwSchema:
		return e, SearchPath
	}
	if v := postgresVar(name); v != 0 {
		return e, v
	}
	return e | Pins, 0
}

// value returns the keyword that the current token spells, as a word, a name or a
// string.
func (w *walker) value() lex.Keyword {
	if w.k == lex.String {
		return lex.LookupKeyword(w.lx.Text())
	}
	return w.name()
}

func hasDot(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '.' {
			return true
		}
	}
	return false
}
