package route

import (
	"encoding/csv"
	"errors"
	"io"
)

// pgCSVReader reads PostgreSQL's csvlog.
type pgCSVReader struct{ left int64 }

// The columns that matter; later versions have added more at the end.
// https://www.postgresql.org/docs/current/runtime-config-logging.html
const (
	pgCSVSession  = 5
	pgCSVSeverity = 11
	pgCSVMessage  = 13
	pgCSVColumns  = 23 // of PostgreSQL 9.0 to 12
)

func (r *pgCSVReader) skipped() int64 { return r.left }

func (r *pgCSVReader) read(in io.Reader, emit func(*entry) error) error {
	records := csv.NewReader(in)
	records.FieldsPerRecord = -1
	records.ReuseRecord = true
	for {
		record, err := records.Read()
		var bad *csv.ParseError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad) || err == nil && len(record) < pgCSVColumns:
			r.left++
			continue
		case err != nil:
			return err
		}
		if record[pgCSVSeverity] != "LOG" {
			continue
		}
		e, ok := pgMessage(record[pgCSVMessage])
		if !ok {
			continue
		}
		e.session = record[pgCSVSession]
		if err := emit(&e); err != nil {
			return err
		}
	}
}
