package route

import (
	"bytes"
	"io"
)

// mysqlGeneralReader reads the general query log of MySQL and MariaDB:
//
//	251129 22:53:14	     5 Connect	app@127.0.0.1 on app using TCP/IP
//			     5 Query	select 1,
//	2
//	2025-11-29T22:53:14.123456Z	    5 Execute	select 1
//
// The second form of the time is MySQL's since 5.7. The others leave it out where it
// is that of the entry before. Texts are written as they are, so that a line of one
// that looks like an entry is taken for one.
type mysqlGeneralReader struct{ left int64 }

func (r *mysqlGeneralReader) skipped() int64 { return r.left }

func (r *mysqlGeneralReader) read(in io.Reader, emit func(*entry) error) error {
	lines := newLineScanner(in)
	var (
		text   []byte
		id     string
		open   bool // text is a statement whose end has not been seen
		inside bool // an entry was seen, so that further lines belong to it
	)
	finish := func() error {
		if !open {
			return nil
		}
		open = false
		e := statement(string(text))
		e.session = id
		return emit(&e)
	}
	for {
		line, err := lines.next()
		if err == io.EOF {
			return finish()
		}
		if err != nil {
			return err
		}
		session, command, argument, ok := mysqlEntry(line)
		switch {
		case ok:
		case isMySQLBanner(line):
			// A start of the server, which numbers its connections from 1 again.
			if err := finish(); err != nil {
				return err
			}
			if err := emit(&entry{note: noteEnded}); err != nil {
				return err
			}
			inside = false
			continue
		case isMySQLHead(line):
			continue
		case open:
			text = append(append(text, '\n'), line...)
			continue
		default:
			if !inside && len(line) > 0 {
				r.left++
			}
			continue
		}
		if err := finish(); err != nil {
			return err
		}
		inside = true
		if string(session) != id {
			id = string(session)
		}
		switch string(command) {
		case "Query", "Execute":
			open = true
			text = append(text[:0], argument...)
		case "Connect", "Quit", "Change user", "Reset Connection":
			if err := emit(&entry{session: id, note: noteEnded}); err != nil {
				return err
			}
		}
	}
}

// mysqlEntry takes the first line of an entry apart.
func mysqlEntry(line []byte) (session, command, argument []byte, ok bool) {
	at := 0
	switch {
	case bytes.HasPrefix(line, []byte("\t\t")):
		at = 2
	case len(line) > 16 && isDigit(line[0]):
		tab := bytes.IndexByte(line[:min(len(line), 40)], '\t')
		if tab < 0 || !isMySQLTime(line[:tab]) {
			return nil, nil, nil, false
		}
		at = tab + 1
	default:
		return nil, nil, nil, false
	}
	at = span(line, at, func(c byte) bool { return c == ' ' })
	end := span(line, at, isDigit)
	if end == at || end >= len(line) || line[end] != ' ' {
		return nil, nil, nil, false
	}
	session = line[at:end]
	command, argument, found := bytes.Cut(line[end+1:], []byte("\t"))
	if !found || len(command) == 0 || command[0] < 'A' || command[0] > 'Z' ||
		span(command, 0, func(c byte) bool { return c == ' ' || 'a' <= c|0x20 && c|0x20 <= 'z' }) != len(command) {
		return nil, nil, nil, false
	}
	return session, command, argument, true
}

// isMySQLTime knows 251129 22:53:14, 251129  2:53:14 and 2025-11-29T22:53:14.123456Z.
func isMySQLTime(b []byte) bool {
	if span(b, 0, isDigit) == 6 {
		return len(b) == len("251129 22:53:14") && b[6] == ' ' && b[9] == ':' && b[12] == ':'
	}
	return len(b) > 19 && b[4] == '-' && b[7] == '-' && b[10] == 'T' && b[13] == ':'
}

// isMySQLBanner knows the first line that a server writes into its logs.
func isMySQLBanner(line []byte) bool {
	return bytes.Contains(line, []byte(", Version: ")) && bytes.HasSuffix(bytes.TrimRight(line, " \r"), []byte("started with:"))
}

// isMySQLHead knows the two lines behind the banner.
func isMySQLHead(line []byte) bool {
	return bytes.HasPrefix(line, []byte("Tcp port: ")) ||
		bytes.HasPrefix(line, []byte("Time ")) && bytes.Contains(line, []byte("Id Command")) && bytes.Contains(line, []byte("Argument"))
}
