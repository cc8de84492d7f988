package difftest

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Statement is a generated text.
type Statement struct {
	Text string
	// Writes: it plainly writes, locks, or acts on the session or the server, so
	// that no classifier may call it a read.
	Writes bool
	// Danger: it must not be run, even if it is called a read. It would end
	// the server or other sessions.
	Danger bool
}

// Generator makes the statements of a dialect. The zero value is of no use; see
// NewGenerator. It may be used by one goroutine at a time.
type Generator struct {
	// Dir is where INTO OUTFILE and COPY TO would write their files.
	Dir string

	d      classify.Dialect
	seed   uint64
	r      *rand.Rand
	depth  int
	danger bool
}

// NewGenerator returns a generator for Postgres, MySQL or MariaDB.
func NewGenerator(d classify.Dialect, seed uint64, dir string) *Generator {
	return &Generator{Dir: dir, d: d, seed: seed}
}

// Statement returns statement i of the seed.
func (g *Generator) Statement(i int) Statement {
	g.r = rand.New(rand.NewPCG(g.seed, uint64(i)))
	g.depth, g.danger = 0, false
	var s Statement
	if g.d == classify.Postgres {
		s.Text, s.Writes = g.postgres()
	} else {
		s.Text, s.Writes = g.mysql()
	}
	s.Danger = g.danger
	s.Text = g.dress(s.Text)
	return s
}

// The grammars write keywords in upper case, names in lower case, a blank where
// something must stand between two tokens, and the following where not.
const (
	gap   = "\x01" // blanks and comments may stand here
	blank = "\x02" // a blank inside a literal
	fixed = "\x03" // before a word in upper case that has to stay in it
)

// dress puts blanks, comments and mixed case into a text of the grammars.
func (g *Generator) dress(text string) string {
	plain := g.chance(40)
	var b strings.Builder
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' && plain:
			b.WriteByte(' ')
		case c == ' ':
			b.WriteString(g.separator())
		case c == gap[0]:
			if !plain && g.chance(8) {
				b.WriteString(g.separator())
			}
		case c == blank[0]:
			b.WriteByte(' ')
		case c == fixed[0]:
		case 'A' <= c && c <= 'Z':
			j := i
			for j < len(text) && ('A' <= text[j] && text[j] <= 'Z' || text[j] == '_') {
				j++
			}
			word := text[i:j]
			if !plain && (i == 0 || text[i-1] != fixed[0]) {
				word = g.letters(word)
			}
			b.WriteString(word)
			i = j
			continue
		default:
			b.WriteByte(c)
		}
		i++
	}
	text = b.String()
	if plain {
		return text
	}
	switch g.r.IntN(20) {
	case 0:
		text = g.separator() + text
	case 1:
		text += g.separator() + ";" + g.separator()
	case 2:
		text = ";" + text
	case 3:
		text += " -- FOR UPDATE"
	}
	if g.d == classify.Postgres && text[0] == ';' {
		return text
	}
	switch g.r.IntN(150) {
	case 0:
		text += "/*! FOR UPDATE" // MySQL runs it, closed or not
	case 1:
		text = strings.Replace(text, " ", "\xa0", 2)
	case 2:
		text += "\x00"
	}
	return strings.TrimPrefix(text, ";") // MySQL has no empty statements
}

func (g *Generator) letters(word string) string {
	switch g.r.IntN(8) {
	case 0:
		return strings.ToLower(word)
	case 1:
		b := []byte(word)
		for i := range b {
			if b[i] != '_' && g.r.IntN(2) == 0 {
				b[i] |= 0x20
			}
		}
		return string(b)
	}
	return word
}

// separator returns blanks and comments, all of which are as good as a blank.
func (g *Generator) separator() string {
	if !g.chance(25) {
		return " "
	}
	both := []string{"\n", "\t", "  ", "\r\n", "\f", "/**/", "/* c */", " /* it's; \" */ ", "/*+ SET_VAR(a=1) */", " -- '\n", " --\n", "/*\n*/"}
	pg := []string{"--x\n", "/* /* nested */ ' */", "/*! FOR UPDATE */", "/*/**/*/", "--\r"}
	my := []string{" \v ", "-- \r'\n", "#\r'\n", "--\x7f'\n", "--\x1f\"\n", "/*! /* x */ */", "/*!50000 */", "/*!99999 ' */", "/*\x00*/", "# x\n", "#'\n", "/*!*/", "/*! */", "/* /* */ ", "-- \\\n", "--\t\"\n"}
	if g.r.IntN(3) > 0 {
		return both[g.r.IntN(len(both))]
	}
	if g.d == classify.Postgres {
		return pg[g.r.IntN(len(pg))]
	}
	return my[g.r.IntN(len(my))]
}

// chance is true in percent of the cases.
func (g *Generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// one returns one of the texts.
func (g *Generator) one(texts ...string) string { return texts[g.r.IntN(len(texts))] }

// maybe returns the text in percent of the cases, else nothing.
func (g *Generator) maybe(percent int, text string) string {
	if g.chance(percent) {
		return text
	}
	return ""
}

func (g *Generator) number() string { return strconv.Itoa(g.r.IntN(6)) }

// deep reports whether it is time for leaves, and counts a level; each call needs
// an up.
func (g *Generator) deep() bool {
	g.depth++
	return g.depth > 3 || g.depth > 1 && g.chance(35)
}

func (g *Generator) up() { g.depth-- }

// list returns one to n texts of the function, with commas.
func (g *Generator) list(n int, f func() string) string {
	texts := make([]string, 1+g.r.IntN(n))
	for i := range texts {
		texts[i] = f()
	}
	return strings.Join(texts, gap+","+gap)
}

// call returns a call of a function, with room before the parenthesis.
func (g *Generator) call(name string, args ...string) string {
	room := gap
	if g.d != classify.Postgres {
		room = "" // MySQL knows some of its functions only without
	}
	return name + room + "(" + gap + strings.Join(args, gap+","+gap) + gap + ")"
}

func paren(text string) string { return "(" + gap + text + gap + ")" }

// literal protects the blanks and capitals of a quoted text.
func literal(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ' ':
			b.WriteString(blank)
		case 'A' <= c && c <= 'Z' && (i == 0 || text[i-1] < 'A' || 'Z' < text[i-1]):
			b.WriteString(fixed)
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
