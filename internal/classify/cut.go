package classify

import "github.com/sqlreplicated/replicated/internal/lex"

// Mode returns how the lexer cuts texts of the dialect on a server with default
// settings. Generic texts are cut as PostgreSQL's.
func (d Dialect) Mode() lex.Mode {
	if int(d) >= len(modes) {
		d = Generic
	}
	return modes[d].first
}

// Cut returns the length of the first statement of a script, with the semicolon
// that ends it. ok is false if text ends first, and n is then all of it: a reader
// that has more of the script asks again with more.
//
// As in the clients psql and mariadb, a semicolon does not cut inside literals,
// comments, and, as in psql only, parentheses. Other than in the clients of MySQL,
// which need DELIMITER for it, neither does it between the BEGIN and the END of a
// routine that the statement creates.
func Cut(d Dialect, text string) (n int, ok bool) {
	var lx lex.Lexer
	var c cutter
	m := d.Mode()
	lx.Init(text, m)
	for {
		switch k := lx.Next(); k {
		case lex.EOF:
			return len(text), false
		case lex.LParen:
			c.parens++
		case lex.RParen:
			c.parens = max(0, c.parens-1)
		case lex.Semicolon:
			if c.blocks == 0 && (c.parens == 0 || m.MySQL) {
				return lx.Pos(), true
			}
			c.closing = false
		case lex.Word:
			if !lx.Dotted && c.parens == 0 {
				c.word(lx.Kw)
			} else {
				c.seen++
				c.closing = false
			}
		default:
			c.seen++
			c.closing = false
		}
	}
}

// cutter is what Cut knows of the statement so far. Words in parentheses are left
// out: no block begins or ends there.
type cutter struct {
	parens  int
	blocks  int  // BEGIN and CASE that have no END yet, in a routine
	seen    int  // tokens, parentheses left out
	created bool // CREATE leads
	routine bool // … and a routine follows it
	closing bool // END stands just before
}

// word takes a keyword, or any other word as NoKeyword.
func (c *cutter) word(kw lex.Keyword) {
	closing := c.closing
	c.closing = false
	switch kw {
	case lex.KwCreate:
		c.created = c.created || c.seen == 0
	case lex.KwFunction, lex.KwProcedure, lex.KwTrigger, lex.KwEvent, lex.KwPackage:
		// CREATE OR REPLACE DEFINER = user@host PROCEDURE is the longest way there.
		c.routine = c.routine || c.created && c.seen < 16
	case lex.KwBegin:
		if c.routine {
			c.blocks++
		}
	case lex.KwCase:
		// END CASE closes what CASE opened and END has already counted.
		if c.blocks > 0 && !closing {
			c.blocks++
		}
	case lex.KwEnd:
		c.closing = c.blocks > 0
	case lex.KwIf, lex.KwLoop, lex.KwWhile, lex.KwRepeat, lex.KwFor:
		// END IF and its like close what is not counted.
		if closing {
			c.blocks++
		}
	}
	if c.closing {
		c.blocks--
	}
	c.seen++
}
