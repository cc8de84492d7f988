package route

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// entry is what an input has to say of one statement. Its text is only good until
// the receiver returns.
type entry struct {
	text string
	// session tells apart the connections of a log; "" is not known.
	session string
	// calls is how often it ran, at least 1.
	calls int64
	// took is how long the calls took together; unknown if it is negative.
	took time.Duration
	// cutOff: the server kept only the beginning of the text.
	cutOff bool
	// note: not a statement but news of the session.
	note note
}

// note is what a log says of a session, besides its statements.
type note uint8

const (
	noteNone  note = iota
	noteTook       // the statement before, in this session, took so long
	noteEnded      // the session is over, or all are if it has no name; a new one may have the same
)

const unknownTime time.Duration = -1

// statement is the entry of one call.
func statement(text string) entry { return entry{text: text, calls: 1, took: unknownTime} }

// reader gets the entries out of one input, in its order. What it cannot read of a
// log it counts and leaves out; of a script or a list of lines it is an error.
type reader interface {
	read(in io.Reader, emit func(*entry) error) error
	// skipped returns how many lines or records were left out so far.
	skipped() int64
}

// format is a kind of input.
type format struct {
	name string
	// dialect is the dialect of inputs of this kind, if nothing else is asked for.
	dialect classify.Dialect
	// log: entries are what clients did, not texts by themselves.
	log bool
	// sessions: all that a session did is there, so that transactions can be
	// followed. A slow log has the COMMIT without the BEGIN.
	sessions bool
	reader   func(o *options) reader
	// record: it has no statements in it, but what package record has counted.
	record bool
}

var formats = []format{
	{name: "sql", reader: func(o *options) reader { return &scriptReader{dialect: o.dialect} }},
	{name: "lines", reader: func(*options) reader { return &lineReader{} }},
	{name: "pglog", dialect: classify.Postgres, log: true, sessions: true, reader: func(o *options) reader { return &pgLogReader{prefix: o.prefix} }},
	{name: "pgcsv", dialect: classify.Postgres, log: true, sessions: true, reader: func(*options) reader { return &pgCSVReader{} }},
	{name: "pgjson", dialect: classify.Postgres, log: true, sessions: true, reader: func(*options) reader { return &pgJSONReader{} }},
	{name: "mysqlgeneral", dialect: classify.AnyMySQL, log: true, sessions: true, reader: func(*options) reader { return &mysqlGeneralReader{} }},
	{name: "mysqlslow", dialect: classify.AnyMySQL, log: true, reader: func(*options) reader { return &mysqlSlowReader{} }},
	{name: "record", record: true},
}

// formatNamed returns the format of that name.
func formatNamed(name string) (*format, error) {
	names := make([]string, 0, len(formats)+1)
	for i := range formats {
		if formats[i].name == name {
			return &formats[i], nil
		}
		names = append(names, formats[i].name)
	}
	return nil, fmt.Errorf("there is no input format %q: want %s or log", name, strings.Join(names, ", "))
}
