package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// temporary are the effects of whatever makes an object that lives as long as the
// session. A read-only MySQL replica makes it without an error.
const temporary = Stamps | Pins | TempObject | Silent

// create takes CREATE, and ALTER where that may hold a compound statement.
func (w *walker) create(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	if w.skip(lex.KwOr) {
		w.skip(lex.KwReplace)
	}
	if w.kw == lex.KwGlobal || w.kw == lex.KwLocal {
		w.next()
	}
	temp := w.kw == lex.KwTemp || w.kw == lex.KwTemporary
	if !temp && w.mayBeCompound() {
		if w.takeRest() {
			r.effect |= unknownEffects
		}
		return r
	}
	w.body(0)
	if w.my && !w.gen {
		// User names hold @, and a definition is not run.
		w.facts &^= factUserVar | factAssigns
	}
	r.effect |= sideEffects(w.facts)
	if temp || w.facts&factPgTemp != 0 {
		r.effect |= temporary
		if w.my {
			r.effect &^= EndsTx
		}
	}
	return r
}

// mayBeCompound reports whether what is created may have a compound statement, with
// semicolons, for a body: a routine, a trigger, an event, a package. It looks at
// the words before the object's name.
func (w *walker) mayBeCompound() bool {
	ahead := w.lx
	for k, kw := w.k, w.kw; k != lex.EOF && k != lex.Semicolon && k != lex.LParen; {
		switch kw {
		case lex.KwProcedure, lex.KwFunction, lex.KwTrigger, lex.KwEvent, lex.KwPackage:
			return true
		case lex.KwTable, lex.KwIndex, lex.KwView, lex.KwDatabase, lex.KwSchema, lex.KwRole, lex.KwAs:
			return false
		}
		if ahead.Pos() > w.lx.Pos()+256 {
			return false // no definer's name is that long
		}
		k, kw = ahead.Next(), lex.NoKeyword
		if k == lex.Word && !ahead.Dotted {
			kw = ahead.Kw
		}
	}
	return false
}

// alter takes PostgreSQL's ALTER.
func (w *walker) alter(ru *rule) result {
	w.next()
	system := w.kw == lex.KwSystem
	w.body(0)
	if system {
		return result{class: Admin, effect: Stamps | Silent, reason: "acts on the server"}
	}
	return w.fixed(ru)
}

// dropMySQL takes DROP: tables, temporary tables, prepared statements.
func (w *walker) dropMySQL(ru *rule) result {
	w.next()
	kw := w.kw
	w.body(0)
	w.facts &^= factUserVar | factAssigns
	r := w.fixed(ru)
	switch kw {
	case lex.KwTemporary:
		r.effect = Stamps | Silent
	case lex.KwPrepare:
		r = result{class: Session, effect: Stamps | Silent, reason: "prepared statement of the session"}
	}
	return r
}

// load takes LOAD: rows from a file, or PostgreSQL's libraries and MySQL's index
// caches.
func (w *walker) load(ru *rule) result {
	w.next()
	kw := w.kw
	w.body(0)
	if kw == lex.KwIndex {
		return result{class: Admin, effect: adminMySQL, reason: "acts on the server"}
	}
	return w.fixed(ru)
}

// flush takes MySQL's FLUSH, which locks tables in two of its forms.
func (w *walker) flush(ru *rule) result {
	r := w.fixed(ru)
	w.next()
	for !w.atEnd() {
		switch w.kw {
		case lex.KwLock, lex.KwExport:
			r.class, r.reason = Lock, "locks tables"
			r.effect |= Pins
		}
		w.next()
	}
	return r
}

// copy takes PostgreSQL's COPY: rows to the client are a read, everything else
// writes a table, a file, or into a program.
func (w *walker) copy(ru *rule) result {
	w.next()
	ahead := w.lx
	k, kw := w.k, w.kw
	depth := 0
	toClient := false
scan:
	for {
		switch k {
		case lex.LParen:
			depth++
		case lex.RParen:
			depth--
		case lex.EOF, lex.Semicolon:
			break scan
		}
		if depth == 0 && (kw == lex.KwTo || kw == lex.KwFrom) {
			target := ahead.Next()
			toClient = kw == lex.KwTo && target == lex.Word && (ahead.Kw == lex.KwStdout || ahead.Kw == lex.KwStdin)
			break
		}
		k = ahead.Next()
		kw = lex.NoKeyword
		if k == lex.Word {
			kw = ahead.Kw
		}
	}
	w.body(0)
	if !toClient {
		return w.fixed(ru)
	}
	return query(w.facts)
}
