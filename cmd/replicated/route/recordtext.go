package route

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// writeRecordText writes the report as plain text.
func writeRecordText(w io.Writer, r *recordReport) error {
	t := &textReport{r: &report{Notes: r.Notes}}
	t.recordHead(r)
	if r.Total.Statements == 0 {
		t.line("There is no statement in it.")
		t.line("")
	} else {
		t.fates(r)
		t.callers(r)
		t.getWrites(r)
	}
	t.notes()
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textReport) recordHead(r *recordReport) {
	t.line("%s", r.Source)
	if r.From != "" {
		t.line("%s processes, %s to %s UTC", thousands(r.Processes), r.From, r.To)
	}
	t.line("")
}

func (t *textReport) fates(r *recordReport) {
	t.line("  %12s %9s", "statements", "share")
	for _, f := range append([]fateReport{r.Moving}, r.Fates...) {
		share := r.Total.Share(f.Fate)
		t.line("  %12s %9s  %s  %s", thousands(f.N), percent(share), bar(share), f.Title)
		if f.Fate == fateMoves || f.Fate == fateStays {
			continue
		}
		for _, w := range f.Whys {
			t.line("  %12s %9s      %s", thousands(w.n), percent(part(float64(w.n), float64(r.Total.Statements))), w.what)
		}
	}
	t.line("")
}

// callerWidth is how wide a caller's name is shown.
const callerWidth = 40

func (t *textReport) callers(r *recordReport) {
	t.title("Callers")
	columns := fmt.Sprintf("  %-*s %12s %9s %9s %9s  ", callerWidth, "", "statements", "replicas", "stale", "breaks")
	t.line("%s", strings.TrimRight(columns, " "))
	before := advices
	for i := range r.Callers {
		c := &r.Callers[i]
		if c.kind != before {
			before = c.kind
			t.line("  %s", c.Advice)
		}
		t.line("    %s %12s %9s %9s %9s", pad(c.Name, callerWidth-2), thousands(c.Statements),
			percent(c.Share(fateMoves)), percent(c.Share(fateStale)), percent(c.Share(fateBreaks)))
		if c.kind == adviceFix {
			t.line("      %s", c.Why)
		}
	}
	if r.MoreRows > 0 {
		t.line("    and %s more", thousands(int64(r.MoreRows)))
	}
	t.line("")
}

// pad cuts a text to so many columns, or fills them.
func pad(text string, columns int) string {
	text = clip(text, columns)
	return text + strings.Repeat(" ", max(0, columns-utf8.RuneCountInString(text)))
}

func (t *textReport) getWrites(r *recordReport) {
	if len(r.Get) == 0 {
		return
	}
	t.title("GET and HEAD requests that write")
	for _, g := range r.Get {
		t.line("    %s  %s", pad(g.Name, callerWidth-2), clip(inALine(g.Wrote), textWidth-callerWidth-6))
	}
	if r.MoreGet > 0 {
		t.line("    and %s more", thousands(int64(r.MoreGet)))
	}
	t.line("")
}
