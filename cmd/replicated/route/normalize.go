package route

import (
	"bytes"
	"hash/maphash"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/lex"
)

// normalizer makes the form of a text that is the same whatever values stand in it:
// each literal and placeholder becomes a question mark, comments go, and so does
// what a list repeats:
//
//	SELECT a FROM t WHERE id IN (?, …)
//	INSERT INTO t (a, b) VALUES (?, …), …
//
// No value of the text is left in it. What cannot be cut for certain has no form.
// It keeps buffers, and is one goroutine's.
type normalizer struct {
	dialect classify.Dialect
	seed    maphash.Seed

	out    []byte
	folded []byte
}

func newNormalizer(d classify.Dialect) *normalizer {
	return &normalizer{dialect: d, seed: maphash.MakeSeed()}
}

// uncertain are the notes of texts of which a literal may be taken for something
// else. MySQL's backslashes are not among them: nearly all of its texts are written
// for the default mode.
func (n *normalizer) uncertain(notes lex.Note) bool {
	if !n.dialect.Mode().MySQL && notes&lex.EscapedQuote != 0 {
		return true
	}
	return notes&lex.Unfinished != 0
}

// form returns the form, good until the next call, and its hash, in which case and
// blanks do not count. ok is false if there is none.
func (n *normalizer) form(text string) (form []byte, hash uint64, ok bool) {
	var lx lex.Lexer
	lx.Init(text, n.dialect.Mode())
	n.out = n.out[:0]
	var l lists
	for {
		before := lx.Pos()
		k := lx.Next()
		if len(n.out) > 0 && !lx.Dotted && k != lex.EOF && k != lex.Comma && k != lex.Semicolon && gap(text, before, &lx) {
			n.out = append(n.out, ' ')
		}
		if lx.Dotted {
			switch k {
			case lex.Word, lex.Name, lex.Quoted, lex.Op, lex.Number:
				n.out = append(n.out, '.')
			default:
				// The digests of MySQL have three dots where a list was.
				n.out = append(n.out, "…"...)
			}
		}
		switch k {
		case lex.EOF:
			n.out = bytes.TrimRight(n.out, " ;")
			if n.uncertain(lx.Notes) {
				return nil, 0, false
			}
			return n.out, n.hash(), true
		case lex.String, lex.Number, lex.Param, lex.Quoted:
			n.out = l.value(n.out)
			continue
		case lex.Name:
			if n.dialect == classify.Generic {
				// In MySQL it may be a literal.
				n.out = append(n.out, `"?"`...)
			} else {
				n.out = append(n.out, text[lx.Start-1:min(lx.End+1, len(text))]...)
			}
		case lex.UserVar:
			n.out = append(n.out, "@?"...)
		case lex.Comma:
			n.out = append(n.out, ',')
			l.comma()
			continue
		case lex.LParen:
			n.out = append(n.out, '(')
			l.open(len(n.out) - 1)
			continue
		case lex.RParen:
			n.out = l.close(append(n.out, ')'))
			continue
		default:
			if n.dialect == classify.Generic && k == lex.Op && text[lx.Start] == '?' {
				n.out = l.value(n.out)
				continue
			}
			n.out = append(n.out, text[lx.Start:lx.End]...)
		}
		l.other()
	}
}

// gap reports whether blanks or a comment stand between the place before and the
// token of the lexer.
func gap(text string, before int, lx *lex.Lexer) bool {
	switch c := text[before]; c {
	case ' ', '\t', '\n', '\r', '\f', '\v':
		return true
	case '/', '-', '#':
		return lx.Start > before+1
	}
	return false
}

func (n *normalizer) hash() uint64 {
	n.folded = n.folded[:0]
	for _, c := range n.out {
		if c == ' ' {
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		n.folded = append(n.folded, c)
	}
	return maphash.Bytes(n.seed, n.folded)
}

// lists shortens what is repeated. All its places are offsets in the form.
type lists struct {
	after int  // behind the last value, if that or its comma is what was last
	again bool // … and the list has its dots
	began bool // a comma was last, behind that value

	opened int // the last opening parenthesis, if no other stood since; or -1

	from, to int  // the last pair of parentheses without others inside
	end      int  // … and its dots
	dots     bool // … if it has them
	follows  bool // a comma and an opening parenthesis are all that stood since
	commas   bool // a comma is
}

func (l *lists) value(out []byte) []byte {
	l.commas = false
	if l.began {
		out = out[:l.after]
		if !l.again {
			out = append(out, ", …"...)
		}
		l.again, l.began, l.after = true, false, len(out)
		return out
	}
	out = append(out, '?')
	l.after, l.again = len(out), false
	return out
}

func (l *lists) comma() {
	l.began = l.after > 0
	l.commas = l.end > 0 && !l.follows
}

func (l *lists) other() {
	l.after, l.began, l.commas = 0, false, false
	if l.opened <= 0 {
		l.end = 0
	}
}

func (l *lists) open(at int) {
	l.after, l.began = 0, false
	l.follows = l.commas
	l.commas = false
	if !l.follows {
		l.end = 0
	}
	l.opened = at
}

func (l *lists) close(out []byte) []byte {
	l.after, l.began = 0, false
	if l.opened <= 0 {
		l.end, l.follows = 0, false
		return out
	}
	opened := l.opened
	l.opened = 0
	if l.follows && bytes.Equal(out[l.from:l.to], out[opened:]) {
		out = out[:l.end]
		if !l.dots {
			out = append(out, ", …"...)
		}
		l.dots, l.follows, l.end = true, false, len(out)
		return out
	}
	l.from, l.to, l.end = opened, len(out), len(out)
	l.dots, l.follows = false, false
	return out
}
