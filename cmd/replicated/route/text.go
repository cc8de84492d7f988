package route

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// textWidth is how wide a report is, in columns.
const textWidth = 120

// writeText writes the report as plain text.
func writeText(w io.Writer, r *report) error {
	t := &textReport{r: r}
	t.head()
	t.shares()
	t.kinds()
	t.list("Look like reads, and are not proven to be", r.Disguised, true)
	t.list("Move to the replicas", r.Moving, false)
	t.notes()
	_, err := io.WriteString(w, t.b.String())
	return err
}

type textReport struct {
	r *report
	b strings.Builder
}

func (t *textReport) line(format string, args ...any) {
	t.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	t.b.WriteByte('\n')
}

func (t *textReport) head() {
	t.line("%s, read as %s", t.r.Source, t.r.Dialect)
	t.line("")
}

const barCells = 30

func bar(share float64) string {
	full := int(share*barCells + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", barCells-full)
}

// noun is what is counted.
func (r *report) noun() string {
	if r.Counted {
		return "calls"
	}
	return "statements"
}

func (t *textReport) shares() {
	r := t.r
	if r.Total.calls == 0 {
		t.line("There is no statement in it.")
		t.line("")
		return
	}
	columns := fmt.Sprintf("  %-16s %12s %9s", "", r.noun(), "share")
	if r.Timed {
		columns += fmt.Sprintf(" %14s %9s", "time", "share")
	}
	t.line("%s", columns)
	for _, row := range []struct {
		name string
		amount
	}{{"to the replicas", r.Replica}, {"to the primary", r.Primary}} {
		line := fmt.Sprintf("  %-16s %12s %9s", row.name, thousands(row.calls), percent(r.callShare(row.amount)))
		if r.Timed {
			line += fmt.Sprintf(" %14s %9s", duration(row.took), percent(r.timeShare(row.amount)))
		}
		t.line("%s  %s", line, bar(r.share(row.amount)))
	}
	t.line("  %-16s %12s %9s", "count as writes", thousands(r.Writes), percent(part(float64(r.Writes), float64(r.Total.calls))))
	t.line("")
}

func (t *textReport) kinds() {
	if len(t.r.Kinds) == 0 {
		return
	}
	t.title("Stay on the primary, by reason")
	for _, k := range t.r.Kinds {
		t.line("  %s  %s", t.amount(k.amount), k.Why)
		t.rows(k.List, false)
	}
	t.line("")
}

func (t *textReport) list(title string, l listReport, why bool) {
	if len(l.Rows) == 0 {
		return
	}
	t.title(title)
	t.rows(l, why)
	t.line("")
}

func (t *textReport) title(title string) {
	t.line("%s", title)
	t.line("%s", strings.Repeat("─", utf8.RuneCountInString(title)))
}

func (t *textReport) rows(l listReport, why bool) {
	const indent = "  "
	gap := "  "
	if !why {
		gap = "    "
	}
	for _, g := range l.Rows {
		lead := indent + t.amount(g.amount) + gap
		t.line("%s%s", lead, clip(g.text, textWidth-utf8.RuneCountInString(lead)))
		if why {
			t.line("%s(%s)", strings.Repeat(" ", utf8.RuneCountInString(lead)), g.why)
		}
	}
	if l.More > 0 {
		t.line("%s%*s%sand %s more", indent, t.width(), "", gap, thousands(int64(l.More)))
	}
}

// amount writes the columns in front of a reason or a statement.
func (t *textReport) amount(a amount) string {
	s := fmt.Sprintf("%10s %8s", thousands(a.calls), percent(t.r.callShare(a)))
	if t.r.Timed {
		s += fmt.Sprintf(" %12s %8s", duration(a.took), percent(t.r.timeShare(a)))
	}
	return s
}

func (t *textReport) width() int { return utf8.RuneCountInString(t.amount(amount{})) }

func (t *textReport) notes() {
	for i, n := range t.r.Notes {
		if i == 0 {
			t.title("To bear in mind")
		}
		for j, line := range wrap(n, textWidth-4) {
			mark := "  "
			if j == 0 {
				mark = "- "
			}
			t.line("  %s%s", mark, line)
		}
	}
}

// clip cuts a text to so many columns.
func clip(text string, columns int) string {
	columns = max(columns, 20)
	text = printable(text)
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

// printable takes from a text what would do something to a terminal.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || 0x7f <= c && c < 0xa0 || 0x202a <= c && c <= 0x202e || 0x2066 <= c && c <= 0x2069 {
			return '\ufffd'
		}
		return c
	}, text)
}

// wrap breaks a text into lines of at most so many columns, between words.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
