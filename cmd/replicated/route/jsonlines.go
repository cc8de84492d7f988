package route

import (
	"encoding/json"
	"io"
)

// jsonLine is an answer of -format json.
type jsonLine struct {
	Route  string `json:"route"`
	Class  string `json:"class"`
	Reason string `json:"reason"`
	Pins   bool   `json:"pins"`
	Write  bool   `json:"write"`
	SQL    string `json:"sql"`
}

// jsonLines writes an answer a line. Bytes that are no UTF-8, which JSON cannot
// hold, become U+FFFD.
type jsonLines struct{ enc *json.Encoder }

func newJSONLines(w io.Writer) *jsonLines {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &jsonLines{enc}
}

func (j *jsonLines) write(e *entry, d *decision) error {
	line := jsonLine{Route: "primary", Class: d.Class, Reason: d.why, Pins: d.Pins, Write: d.Write, SQL: e.text}
	if d.replica {
		line.Route = "replica"
	}
	return j.enc.Encode(line)
}
