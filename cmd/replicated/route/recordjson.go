package route

import (
	"encoding/json"
	"io"
)

// jsonCaller is a line of -format json on records: a caller, or the total.
type jsonCaller struct {
	Caller     *string          `json:"caller,omitempty"` // absent from the total
	Statements int64            `json:"statements"`
	By         map[string]int64 `json:"by"`
	Why        map[string]int64 `json:"why,omitempty"` // of stale, breaks, refused and undecided
	Failed     int64            `json:"failed"`
	Writes     map[string]int64 `json:"writes,omitempty"`
	InGet      bool             `json:"writes_in_get"`
	Advice     string           `json:"advice,omitempty"`
	AdviceWhy  string           `json:"advice_why,omitempty"`

	// In the total.
	Processes int64    `json:"processes,omitempty"`
	From      string   `json:"from,omitempty"`
	To        string   `json:"to,omitempty"`
	Dropped   int64    `json:"dropped,omitempty"`
	Skipped   int64    `json:"skipped,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// writeRecordJSON writes a line for each caller, those with the most statements first,
// and the total at the end.
func writeRecordJSON(w io.Writer, s *recordSummary) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, c := range s.sorted() {
		line := jsonOf(c)
		a, why := c.advise()
		line.Caller, line.InGet, line.Advice, line.AdviceWhy = &c.name, c.writesInGet(), adviceNames[a], why
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	total := jsonOf(&s.total)
	total.Processes, total.Dropped, total.Skipped, total.Notes = s.processes, s.dropped, s.skipped, s.notes()
	if !s.from.IsZero() {
		const form = "2006-01-02T15:04:05Z"
		total.From, total.To = s.from.UTC().Format(form), s.to.UTC().Format(form)
	}
	return enc.Encode(total)
}

func jsonOf(c *caller) *jsonCaller {
	line := &jsonCaller{Statements: c.statements, Failed: c.failed, By: make(map[string]int64), Why: make(map[string]int64), Writes: make(map[string]int64)}
	for f, n := range c.by {
		line.By[fateNames[f]] = n
		if f := fate(f); f != fateMoves && f != fateStays {
			for _, w := range c.why(f) {
				line.Why[w.what] += w.n
			}
		}
	}
	for _, w := range c.written() {
		line.Writes[w.what] += w.n
	}
	return line
}
