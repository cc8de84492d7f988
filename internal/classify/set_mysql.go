package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// setMySQL takes MySQL's and MariaDB's SET. With SET STATEMENT … FOR it stops at
// the statement inside, and done is false.
func (w *walker) setMySQL() (r result, done bool) {
	r = result{class: Session, effect: EmptiesCache, reason: reasonSet}
	w.next()
	if w.kw == lex.KwStatement {
		if w.statementVariables() {
			return r, false
		}
		return w.unknown(), true
	}
	switch w.kw {
	case lex.KwTransaction:
		w.body(0)
		return result{class: Transaction, reason: reasonSetTx}, true
	case lex.KwPassword:
		w.body(0)
		return result{class: Admin, effect: adminMySQL, reason: "changes an account"}, true
	case lex.KwDefault:
		if _, kw := w.peek(); kw == lex.KwRole {
			w.body(0)
			return result{class: Admin, effect: adminMySQL, reason: "changes an account"}, true
		}
	case lex.KwRole:
		if k, _ := w.peek(); k != lex.Op && k != lex.Assign {
			w.next()
			kw := w.kw
			w.body(0)
			r.reason = reasonSetRole
			if kw == lex.KwDefault {
				r.effect |= UnpinsRole
			} else {
				// Also with NONE: the roles that come with the log-in are gone.
				r.effect |= PinsRole
			}
			return r, true
		}
	}
	allGlobal := true
	for {
		a := w.assignment()
		r.effect |= a.effect
		r.vars |= a.vars
		allGlobal = allGlobal && a.global
		w.stopAtComma = true
		w.body(0)
		w.stopAtComma = false
		if w.k != lex.Comma {
			break
		}
		w.next()
	}
	w.facts &^= factUserVar
	if w.facts&(factUnknown|factSequence|factWrites|factText|factInto) != 0 {
		r.effect |= Stamps
	}
	r.effect |= sideEffects(w.facts)
	if allGlobal {
		r.class, r.reason = Admin, "acts on the server"
		r.effect |= Silent
	}
	return r, true
}

// assigned is what one of the assignments of a SET does.
type assigned struct {
	effect Effect
	vars   Vars
	global bool
}

// assignment takes one assignment up to its value, or up to the end of its name.
func (w *walker) assignment() assigned {
	switch w.k {
	case lex.UserVar:
		w.next()
		return assigned{effect: Pins | Silent}
	case lex.SysVar:
		w.next()
	}
	switch w.kw {
	case lex.KwGlobal, lex.KwPersist, lex.KwPersistOnly:
		w.next()
		w.assignedName()
		return assigned{global: true}
	case lex.KwSession, lex.KwLocal:
		w.next()
	}
	kw, plain := w.assignedName()
	if !plain {
		return assigned{effect: Pins}
	}
	switch kw {
	case lex.KwNames, lex.KwCharacter, lex.KwCharset:
		return assigned{vars: Names}
	case lex.KwTimeZone:
		return assigned{vars: TimeZone}
	case lex.KwSqlMode:
		return assigned{vars: SQLMode}
	case lex.KwAutocommit:
		return assigned{effect: OpensTx | EndsTx | Pins}
	}
	return assigned{effect: Pins}
}

// assignedName takes a variable's name. plain is false for one in several parts.
func (w *walker) assignedName() (kw lex.Keyword, plain bool) {
	kw = w.variableName()
	if !w.isName() {
		return lex.NoKeyword, false
	}
	plain = true
	w.next()
	for w.lx.Dotted && !w.atEnd() {
		plain = false
		w.next()
	}
	return kw, plain
}

// variableName returns the keyword that the current token is, be it quoted or
// behind the dot of @@session.
func (w *walker) variableName() lex.Keyword {
	if w.k == lex.Word {
		return w.lx.Kw
	}
	return w.name()
}

// statementVariables goes through SET STATEMENT a=b, … up to the word behind FOR,
// and reports whether it is there.
func (w *walker) statementVariables() bool {
	depth := 0
	for !w.atEnd() {
		switch w.k {
		case lex.LParen:
			depth++
		case lex.RParen:
			depth--
		case lex.UserVar:
			w.facts |= factUserVar
		case lex.Assign:
			w.facts |= factAssigns
		}
		if depth == 0 && w.kw == lex.KwFor {
			w.next()
			return true
		}
		if depth > 0 {
			// A subquery as a value: nobody writes it, and it may call anything.
			w.facts |= factUnknown
		}
		w.next()
	}
	return false
}
