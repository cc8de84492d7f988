package route

import (
	"encoding/json"
	"io"
)

// pgJSONReader reads PostgreSQL's jsonlog: an object a line.
type pgJSONReader struct{ left int64 }

func (r *pgJSONReader) skipped() int64 { return r.left }

func (r *pgJSONReader) read(in io.Reader, emit func(*entry) error) error {
	lines := newLineScanner(in)
	for {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var record struct {
			Session  string `json:"session_id"`
			Severity string `json:"error_severity"`
			Message  string `json:"message"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			if len(line) > 0 {
				r.left++
			}
			continue
		}
		if record.Severity != "LOG" {
			continue
		}
		e, ok := pgMessage(record.Message)
		if !ok {
			continue
		}
		e.session = record.Session
		if err := emit(&e); err != nil {
			return err
		}
	}
}
