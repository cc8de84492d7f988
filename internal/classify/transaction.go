package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// begin takes BEGIN and, after start, START TRANSACTION.
func (w *walker) begin(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	if w.my && w.kw == lex.KwNot {
		// BEGIN NOT ATOMIC: a compound statement of MariaDB, no transaction.
		w.takeRest()
		return result{class: Call, effect: callEffects, reason: "compound statement"}
	}
	readOnly, writes := false, false
	for !w.atEnd() {
		if w.skip(lex.KwRead) {
			switch w.kw {
			case lex.KwOnly:
				readOnly = true
			case lex.KwWrite:
				writes = true
			}
		}
		if w.kw == lex.KwSerializable && !w.my {
			writes = true // a hot standby refuses it, READ ONLY or not
		}
		if !w.atEnd() {
			w.next()
		}
	}
	if readOnly && !writes {
		r.effect |= ReadOnlyTx
	}
	return r
}

// end takes COMMIT, END, ROLLBACK and ABORT.
func (w *walker) end(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	no := false
	for !w.atEnd() {
		switch w.kw {
		case lex.KwPrepared:
			r.effect |= Stamps
		case lex.KwTo:
			r.effect &^= EndsTx // a savepoint
		case lex.KwChain:
			if !no {
				r.effect |= OpensTx
			}
		}
		no = w.kw == lex.KwNo
		w.next()
	}
	return r
}

// prepare takes PREPARE and PREPARE TRANSACTION.
func (w *walker) prepare(ru *rule) result {
	w.next()
	if !w.my && w.kw == lex.KwTransaction {
		if k, _ := w.peek(); k == lex.String {
			w.body(0)
			return result{class: Transaction, effect: EndsTx | Stamps, reason: "transaction control"}
		}
	}
	w.body(0)
	return w.fixed(ru)
}

// start takes MySQL's START: a transaction, or replication.
func (w *walker) start(ru *rule) result {
	if _, kw := w.peek(); kw == lex.KwTransaction {
		return w.begin(ru)
	}
	w.body(0)
	return result{class: Admin, effect: adminMySQL, reason: "acts on the server"}
}

// xa takes MySQL's distributed transactions.
func (w *walker) xa(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	switch w.kw {
	case lex.KwStart, lex.KwBegin:
		r.effect |= OpensTx | Silent
	case lex.KwPrepare, lex.KwCommit, lex.KwRollback:
		r.effect |= EndsTx | Stamps
	case lex.KwEnd, lex.KwRecover:
	default:
		r.effect |= unknownEffects
	}
	w.body(0)
	return r
}
