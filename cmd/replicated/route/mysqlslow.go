package route

import (
	"bytes"
	"io"
	"strconv"
	"time"
)

// mysqlSlowReader reads the slow query log of MySQL and MariaDB:
//
//	# Time: 2025-11-29T22:53:14.123456Z
//	# User@Host: app[app] @ localhost []  Id:     5
//	# Query_time: 0.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0
//	use shop;
//	SET timestamp=1764456794;
//	SELECT 1;
//
// The time is left out where it is that of the entry before; MariaDB has the
// session in a line "# Thread_id: 5 …", and more lines with a hash. The lines use
// and SET timestamp are the server's.
type mysqlSlowReader struct{ left int64 }

func (r *mysqlSlowReader) skipped() int64 { return r.left }

func (r *mysqlSlowReader) read(in io.Reader, emit func(*entry) error) error {
	lines := newLineScanner(in)
	var s slowEntry
	for {
		line, err := lines.next()
		if err == io.EOF {
			return s.finish(emit)
		}
		if err != nil {
			return err
		}
		switch {
		case bytes.HasPrefix(line, []byte("# Time: ")), bytes.HasPrefix(line, []byte("# User@Host: ")):
			if s.body {
				if err := s.finish(emit); err != nil {
					return err
				}
				s = slowEntry{text: s.text[:0]}
			}
			s.head = true
			s.number(line, "Id:")
		case s.head && !s.body && len(line) > 0 && line[0] == '#':
			if bytes.HasPrefix(line, []byte("# administrator command: ")) {
				s.skip = true
			}
			s.number(line, "Thread_id:")
			s.time(line)
		case isMySQLBanner(line):
			if err := s.finish(emit); err != nil {
				return err
			}
			s = slowEntry{text: s.text[:0]}
			if err := emit(&entry{note: noteEnded}); err != nil {
				return err
			}
		case isMySQLHead(line):
		case s.head:
			s.add(line)
		case len(line) > 0:
			r.left++
		}
	}
}

// slowEntry is an entry whose end has not been seen.
type slowEntry struct {
	session string
	took    time.Duration
	timed   bool
	text    []byte

	head bool // a line of the head was seen
	body bool // a line of the text, or the server's before it
	skip bool // it is no statement
}

func (s *slowEntry) number(line []byte, name string) {
	if v := slowValue(line, name); len(v) > 0 {
		s.session = string(v[:span(v, 0, isDigit)])
	}
}

func (s *slowEntry) time(line []byte) {
	if v := slowValue(line, "Query_time:"); v != nil {
		if seconds, err := strconv.ParseFloat(string(v), 64); err == nil {
			s.took, s.timed = time.Duration(seconds*float64(time.Second)), true
		}
	}
}

// slowValue returns the word behind a name, or nil.
func slowValue(line []byte, name string) []byte {
	i := bytes.Index(line, []byte(" "+name))
	if i < 0 {
		return nil
	}
	rest := bytes.TrimLeft(line[i+1+len(name):], " ")
	end := bytes.IndexByte(rest, ' ')
	if end < 0 {
		end = len(rest)
	}
	return rest[:end]
}

func (s *slowEntry) add(line []byte) {
	s.body = true
	if len(s.text) == 0 && slowPreamble(line) {
		return
	}
	if bytes.HasPrefix(line, []byte("# administrator command: ")) {
		s.skip = true
	}
	if len(s.text) > 0 {
		s.text = append(s.text, '\n')
	}
	s.text = append(s.text, line...)
}

// slowPreamble knows the lines that the server writes before a text.
func slowPreamble(line []byte) bool {
	if !bytes.HasSuffix(line, []byte(";")) {
		return false
	}
	return bytes.HasPrefix(line, []byte("use ")) ||
		(bytes.HasPrefix(line, []byte("SET timestamp=")) ||
			bytes.HasPrefix(line, []byte("SET last_insert_id=")) ||
			bytes.HasPrefix(line, []byte("SET insert_id="))) && bytes.Count(line, []byte(";")) == 1
}

func (s *slowEntry) finish(emit func(*entry) error) error {
	if s.skip || len(s.text) == 0 {
		return nil
	}
	e := statement(string(bytes.TrimSuffix(s.text, []byte(";"))))
	e.session = s.session
	if s.timed {
		e.took = s.took
	}
	return emit(&e)
}
