package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// relationReader goes through one statement and gathers the names that stand where
// a relation may stand. It follows the grammars no further than it must: what it
// has to know is where a list of relations begins and ends, and which words may
// stand before a relation in it. So
//
//   - a list ends only at words that the dialect reserves, which therefore are
//     never an alias in it;
//   - what is no name where a relation is due makes the reading fail;
//   - what is none, but might be, is taken for one.
//
// The grammars are those of PostgreSQL 18 (gram.y: table_ref, relation_expr,
// insert_target), MySQL 9 and MariaDB 12 (sql_yacc.yy: table_reference).
//
// Nesting is a stack of frames, one for each open parenthesis and one for the
// statement.
type relationReader struct {
	d   Dialect
	pg  bool
	own *Definitions // of the database's functions; may be nil

	lx     lex.Lexer
	syntax walker // knows the words of the dialect
	// cur is the token being taken, prev and prev2 those before it.
	cur, prev, prev2 lexeme
	frames           []frame
	ctes             cteScope

	reads, writes nameSet
	failed        bool
}

// lexeme is a token of the text, as far as the reader looks at it.
type lexeme struct {
	kind       lex.Kind
	kw         lex.Keyword // none if it is dotted
	dotted     bool
	start, end int
}

func (t lexeme) mark() lex.Mark {
	switch {
	case t.kw != lex.NoKeyword:
		return mark(t.kw)
	case t.kind == lex.EOF:
		return lex.MarkStart
	}
	return lex.MarkOf(t.kind)
}

// ends reports whether the token ends the statement.
func (t lexeme) ends() bool { return t.kind == lex.EOF || t.kind == lex.Semicolon }

// frame is what is known between two parentheses, or outside all.
type frame struct {
	// verb is the statement that the frame holds: SELECT also for VALUES and
	// TABLE; none in a list of expressions.
	verb lex.Keyword
	// head: nothing but a list of WITH was there. verbs: a statement that writes
	// may begin there.
	head, verbs bool
	// expect: a relation is due. list: behind each comma another one is. write:
	// these are written. only: ONLY was there.
	expect, list, write, only bool
	// behind: a relation was just there, and names before parentheses are no
	// functions: what follows is an alias, partitions, hints for indexes.
	behind bool
	// target: the relation is that of an INSERT, COPY or LOAD, behind which a
	// parenthesis has columns. inserts: the statement is an INSERT.
	target, inserts bool
	// called: a function stands where a relation was due.
	called bool
	// joined: a JOIN was there. on counts the joins of which the ON is still to
	// come, natural: the next one has none. Both are PostgreSQL's only.
	joined, natural bool
	on              int
	// arguments: of a function that has FROM among its arguments.
	arguments bool
	// conflict: ON CONFLICT was there.
	conflict bool

	with withList
}

func (r *relationReader) top() *frame { return &r.frames[len(r.frames)-1] }

func (r *relationReader) outermost() bool { return len(r.frames) == 1 }

func (r *relationReader) fail() { r.failed = true }

// read goes through the text. It returns false if that does not show what it
// touches.
func (r *relationReader) read(text string, m lex.Mode) bool {
	if !r.begin(text, m) {
		return false
	}
	r.frames = append(r.frames, frame{head: true, verbs: true})
	for ; !r.cur.ends() && !r.failed; r.step() {
		r.token()
	}
	return !r.failed && r.outermost() && !r.top().expect && !r.top().head
}

// begin goes to the first word of the statement, or of the one that is explained.
func (r *relationReader) begin(text string, m lex.Mode) bool {
	w := &r.syntax
	w.open(r.d, text, m)
	w.next()
	for w.k == lex.Semicolon {
		w.next()
	}
	switch w.tbl[w.kw].parse {
	case parseExplainPostgres:
		w.explainPostgres()
	case parseExplainMySQL:
		if _, _, done := w.explainMySQL(); done {
			return false
		}
	case parseAnalyze:
		if _, done := w.analyzeMySQL(); done {
			return false
		}
	}
	r.lx = w.lx
	r.cur = lexeme{kind: w.k, kw: w.kw, dotted: w.lx.Dotted, start: w.lx.Start, end: w.lx.End}
	return true
}

func (r *relationReader) step() {
	r.prev2, r.prev = r.prev, r.cur
	r.cur = next(&r.lx)
}

func next(lx *lex.Lexer) lexeme {
	t := lexeme{kind: lx.Next(), dotted: lx.Dotted, start: lx.Start, end: lx.End}
	if t.kind == lex.Word && !t.dotted {
		t.kw = lx.Kw
	}
	return t
}

// peek returns the token behind the current one.
func (r *relationReader) peek() lexeme {
	ahead := r.lx
	return next(&ahead)
}

// token takes the current lexeme.
func (r *relationReader) token() {
	f := r.top()
	switch r.cur.kind {
	case lex.LParen:
		r.open(f)
	case lex.RParen:
		r.close(f)
	case lex.Comma:
		switch {
		case f.expect:
			r.fail()
		case f.with.state != withNone:
			r.cteComma(f)
		case f.list:
			f.expect, f.behind, f.only, f.called = true, false, false, false
		}
	case lex.Word, lex.Name, lex.Quoted:
		r.callsByDot()
		switch {
		case f.with.state != withNone && r.cteWord(f):
		case f.expect && !(f.head && r.beginsQuery()):
			r.relation(f)
		default:
			r.word(f)
		}
	default:
		if f.expect || f.with.state != withNone {
			r.fail()
		}
		f.head = false
		if f.verb != lex.KwLoad && (r.cur.kind != lex.Op || !r.prev.names()) {
			f.behind = false // PostgreSQL's t * is t
		}
	}
}

// names reports whether the token is a name, or a keyword that may be one.
func (t lexeme) names() bool {
	return t.kind == lex.Word || t.kind == lex.Name || t.kind == lex.Quoted
}

// open takes an opening parenthesis.
func (r *relationReader) open(f *frame) {
	inner := frame{head: true}
	switch {
	case f.with.state != withNone:
		switch f.with.state {
		case withColumns: // of a common table expression
		case withBody:
			inner.verbs = true
			r.enterCTE(f)
		case withDone: // the query itself, in parentheses
			f.with.state = withNone
			f.head = false
		default:
			r.fail()
		}
	case f.expect:
		// A join in parentheses, or a subquery.
		inner.expect, inner.list, inner.write, inner.only = true, true, f.write, f.only
		f.expect, f.behind, f.only = false, true, false
	case f.verb == lex.KwCopy && r.prev.kw == lex.KwCopy:
		inner.verbs = true
	default:
		r.call(f)
		inner.arguments = r.takesFrom()
	}
	if f.called {
		f.called, f.behind = false, true
	}
	f.head = false
	inner.with.visible = r.ctes.depth()
	r.frames = append(r.frames, inner)
}

// close takes a closing parenthesis.
func (r *relationReader) close(f *frame) {
	if r.outermost() || f.expect || f.with.state != withNone {
		r.fail()
		return
	}
	r.ctes.leave(f.with.visible)
	r.frames = r.frames[:len(r.frames)-1]
	if outer := r.top(); outer.with.state == withColumns {
		outer.with.state = withAs
	} else if outer.with.state == withBody {
		r.leaveCTE(outer)
	}
}
