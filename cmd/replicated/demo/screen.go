package demo

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// screenWidth is how wide the demo writes at most, in columns. It is one less than
// the usual terminal has: what erases the rest of a full line erases its end.
const screenWidth = 79

// screen writes the demo's text. On a terminal it is live: coloured, with regions
// that are redrawn in place. Anywhere else it is plain: ASCII lines, one after the
// other, without a single control sequence but the newline.
//
// It is one goroutine's.
type screen struct {
	w      io.Writer
	live   bool
	colour bool
	glyphs glyphs
	fd     int // of the terminal, to ask for its width
	hidden bool
}

// glyphs are the characters that a plain text goes without.
type glyphs struct {
	ok, bad, skipped string
	rule, more       string
	full, empty      string
	levels           []string // of a sparkline, from nothing to all
}

var (
	liveGlyphs = glyphs{ok: "✓", bad: "✗", skipped: "–", rule: "─", more: "…", full: "█", empty: "░",
		levels: strings.Split(" ▁▂▃▄▅▆▇█", "")}
	plainGlyphs = glyphs{ok: "ok", bad: "FAIL", skipped: "-", rule: "-", more: "...", full: "#", empty: ".",
		levels: strings.Split(" .:-=+*#@", "")}
)

// newScreen writes to w, which is a terminal or is not.
func newScreen(w io.Writer, plain bool) *screen {
	s := &screen{w: w, glyphs: plainGlyphs}
	f, ok := w.(*os.File)
	if plain || !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" || runtime.GOOS == "windows" {
		return s
	}
	s.live, s.fd, s.glyphs = true, int(f.Fd()), liveGlyphs
	s.colour = os.Getenv("NO_COLOR") == "" // https://no-color.org
	return s
}

// style is a way to paint a piece of text. The zero style is the terminal's own.
type style string

const (
	plainText style = ""

	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// paint gives a text a style, on a screen that has colours.
func (s *screen) paint(st style, text string) string {
	if !s.colour || st == plainText || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// line writes a line.
func (s *screen) line(text string) {
	fmt.Fprintln(s.w, s.fit(text))
}

// fit makes a text fit on one line of the screen.
func (s *screen) fit(text string) string {
	if text = s.spell(text); !s.live {
		return strings.TrimRight(text, " ")
	}
	width := screenWidth
	// A line that wraps would spoil the redrawing of a region.
	if have, _, err := term.GetSize(s.fd); err == nil && have > 0 {
		width = min(width, have)
	}
	return clip(text, width, s.glyphs.more)
}

// spell writes a text without what a plain screen goes without.
func (s *screen) spell(text string) string {
	if s.live {
		return text
	}
	return strings.ReplaceAll(text, "…", s.glyphs.more)
}

// note writes a remark, over as many lines as it needs.
func (s *screen) note(text string) {
	for _, l := range wrap(text, screenWidth-2) {
		s.line("  " + s.paint(dim, l))
	}
}

func (s *screen) dim(text string) { s.line(s.paint(dim, text)) }

// title writes the head of the page.
func (s *screen) title(name, what string) {
	s.line("")
	s.line("  " + s.paint(bold, name) + s.paint(dim, "  "+what))
}

// chapter begins a chapter.
func (s *screen) chapter(number int, title string) {
	head := fmt.Sprintf("%d  %s ", number, title)
	s.line("")
	s.line(s.paint(bold, head) + s.paint(dim, strings.Repeat(s.glyphs.rule, screenWidth-width(head))))
	s.line("")
}

// code writes a piece of a program.
func (s *screen) code(lines ...string) {
	s.line("")
	for _, l := range lines {
		s.line("  " + s.paint(cyan, l))
	}
}

// close leaves the terminal as it was.
func (s *screen) close() { s.cursor(true) }

func (s *screen) cursor(visible bool) {
	if !s.live || s.hidden != visible {
		return
	}
	s.hidden = !visible
	if visible {
		fmt.Fprint(s.w, "\x1b[?25h")
	} else {
		fmt.Fprint(s.w, "\x1b[?25l")
	}
}

// region is a block of lines that changes until it ends. On a plain screen only
// its last state is written.
type region struct {
	s     *screen
	drawn int // lines on the screen now
}

func (s *screen) region() *region { return &region{s: s} }

// draw shows the lines in place of those before.
func (r *region) draw(lines ...string) {
	if r.s.live {
		r.s.cursor(false)
		r.write(lines)
	}
}

// end writes the lines to stay.
func (r *region) end(lines ...string) {
	r.write(lines)
	r.drawn = 0
	r.s.cursor(true)
}

// write sends everything at once, and overwrites before it erases: a terminal
// never gets to show an empty region.
func (r *region) write(lines []string) {
	var b strings.Builder
	if r.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", r.drawn)
	}
	for _, l := range lines {
		b.WriteString(r.s.fit(l))
		if r.s.live {
			b.WriteString("\x1b[K")
		}
		b.WriteByte('\n')
	}
	if r.drawn > len(lines) {
		b.WriteString("\x1b[J")
	}
	r.drawn = len(lines)
	fmt.Fprint(r.s.w, b.String())
}

// width is how many columns a text takes, styles not counted. All characters of
// the demo are one column wide.
func width(text string) int {
	n := 0
	eachCell(text, func(_ string, cell bool) {
		if cell {
			n++
		}
	})
	return n
}

// clip cuts a text to so many columns, the last of which then hold more. Styles
// stay closed.
func clip(text string, columns int, more string) string {
	if width(text) <= columns {
		return text
	}
	var b strings.Builder
	n, keep := 0, max(0, columns-width(more))
	eachCell(text, func(piece string, cell bool) {
		if cell {
			n++
			if n == keep+1 {
				b.WriteString(more)
			}
			if n > keep {
				return
			}
		}
		b.WriteString(piece)
	})
	return b.String()
}

// eachCell calls f for each character, and for each control sequence as a whole.
func eachCell(text string, f func(piece string, cell bool)) {
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		cell := !strings.HasPrefix(text, "\x1b[")
		if !cell {
			if size = strings.IndexByte(text, 'm') + 1; size == 0 {
				size = len(text)
			}
		}
		f(text[:size], cell)
		text = text[size:]
	}
}

// left pads a text on the right, so that it stands left in so many columns; a
// longer one is cut.
func (s *screen) left(text string, columns int) string {
	text = clip(s.spell(text), columns, s.glyphs.more)
	return text + strings.Repeat(" ", columns-width(text))
}

// wrap breaks a text without styles into lines of at most so many columns, between
// words where it can.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case width(line)+1+width(word) <= columns:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// right pads a text on the left.
func right(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-width(text))) + text
}
