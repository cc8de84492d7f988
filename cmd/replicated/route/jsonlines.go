package route

import (
	"encoding/json"
	"io"

	"github.com/sqlreplicated/replicated"
)

// jsonLine is an answer of -format json.
type jsonLine struct {
	Route  string `json:"route"`
	Class  string `json:"class"`
	Reason string `json:"reason"`
	Pins   bool   `json:"pins"`
	Write  bool   `json:"write"`
	SQL    string `json:"sql"`

	// Both are there if all that the text touches is known.
	Reads  *[]string `json:"reads,omitempty"`
	Writes *[]string `json:"writes,omitempty"`
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
	if relations, complete := d.Relations(); complete && !e.cutOff {
		line.Reads, line.Writes = named(relations, false), named(relations, true)
	}
	return j.enc.Encode(line)
}

// named returns the names of the relations that are written, or that are not.
func named(relations []replicated.Relation, written bool) *[]string {
	names := []string{}
	for _, r := range relations {
		if r.Written != written {
			continue
		}
		name := r.Name
		if r.Schema != "" {
			name = r.Schema + "." + name
		}
		names = append(names, name)
	}
	return &names
}
