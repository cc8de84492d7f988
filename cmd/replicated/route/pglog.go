package route

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// pgLogReader reads what PostgreSQL writes to standard error. A message is one line,
// with log_line_prefix and the severity before it, and further lines begin with a
// tab that is not part of the text.
//
// What tells sessions apart is looked for in the prefix: a process number in
// brackets or behind "pid=", or a session identifier (%c). Without it transactions
// cannot be followed.
type pgLogReader struct {
	// prefix takes a line's prefix apart, if log_line_prefix is known.
	prefix *regexp.Regexp

	left int64
}

func (r *pgLogReader) skipped() int64 { return r.left }

func (r *pgLogReader) read(in io.Reader, emit func(*entry) error) error {
	lines := newLineScanner(in)
	var (
		message []byte // of the LOG entry whose end has not been seen
		session string
		open    bool // message is one
		inside  bool // an entry was seen, so that lines with a tab belong to it
	)
	finish := func() error {
		if !open {
			return nil
		}
		open = false
		e, ok := pgMessage(string(message))
		if !ok {
			return nil
		}
		e.session = session
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
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > 0 && line[0] == '\t' {
			if open {
				message = append(append(message, '\n'), line[1:]...)
			} else if !inside {
				r.left++
			}
			continue
		}
		if err := finish(); err != nil {
			return err
		}
		prefix, severity, text, ok := cutSeverity(line)
		if inside = ok; !ok {
			if len(line) > 0 {
				r.left++
			}
			continue
		}
		if severity == "LOG" {
			open = true
			message = append(message[:0], text...)
			session = r.session(prefix, session)
		}
	}
}

// cutSeverity takes a line apart at the first severity in it.
func cutSeverity(line []byte) (prefix []byte, severity string, text []byte, ok bool) {
	for at := 0; ; {
		i := bytes.Index(line[at:], []byte(":  "))
		if i < 0 {
			return nil, "", nil, false
		}
		at += i
		start := at
		for start > 0 && ('A' <= line[start-1] && line[start-1] <= 'Z' || '0' <= line[start-1] && line[start-1] <= '9') {
			start--
		}
		switch s := string(line[start:at]); s {
		case "LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO",
			"DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5",
			"STATEMENT", "DETAIL", "HINT", "CONTEXT", "QUERY", "LOCATION", "BACKTRACE":
			return line[:start], s, line[at+3:], true
		}
		at += 3
	}
}

// session returns the name of the session in a prefix; last is what to return
// again instead of a copy, if that is it.
func (r *pgLogReader) session(prefix []byte, last string) string {
	var name []byte
	if r.prefix != nil {
		if m := r.prefix.FindSubmatch(prefix); m != nil {
			name = m[1]
		}
	} else {
		name = sessionIn(prefix)
	}
	if string(name) == last {
		return last
	}
	return string(name)
}

// sessionIn looks for [123], [123-1], pid=123 and 65f0c1a2.1f3.
func sessionIn(prefix []byte) []byte {
	for at := 0; ; {
		i := bytes.IndexByte(prefix[at:], '[')
		if i < 0 {
			break
		}
		at += i + 1
		end := span(prefix, at, isDigit)
		if end > at && end < len(prefix) && (prefix[end] == ']' || prefix[end] == '-' || prefix[end] == ':') {
			return prefix[at:end]
		}
	}
	if i := bytes.Index(prefix, []byte("pid=")); i >= 0 {
		if end := span(prefix, i+4, isDigit); end > i+4 {
			return prefix[i+4 : end]
		}
	}
	for at := 0; at < len(prefix); at++ {
		// A session identifier is the time of the connection and the process number,
		// both in hexadecimal digits, of which the time has eight.
		end := span(prefix, at, isHex)
		if end-at == 8 && end < len(prefix) && prefix[end] == '.' {
			if after := span(prefix, end+1, isHex); after > end+1 {
				return prefix[at:after]
			}
		}
		at = end
	}
	return nil
}

func span(b []byte, from int, in func(byte) bool) int {
	for from < len(b) && in(b[from]) {
		from++
	}
	return from
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c && c <= 'f' }

// parsePrefix makes an expression of a value of log_line_prefix, whose first group
// is the session: %c or, without that, %p.
func parsePrefix(prefix string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteByte('^')
	which := byte('p')
	if strings.Contains(prefix, "%c") {
		which = 'c'
	}
	found := false
	for i := 0; i < len(prefix); i++ {
		if prefix[i] != '%' {
			b.WriteString(regexp.QuoteMeta(prefix[i : i+1]))
			continue
		}
		// A number between the sign and the letter is a width: blanks may stand
		// on either side.
		i++
		width := i
		for i < len(prefix) && (prefix[i] == '-' || isDigit(prefix[i])) {
			i++
		}
		if i == len(prefix) {
			return nil, errors.New("log_line_prefix ends in a %")
		}
		pad := ""
		if i > width {
			pad = " *"
		}
		switch c := prefix[i]; {
		case c == '%':
			b.WriteByte('%')
		case c == 'q':
			// Processes without a session stop here; they run no statements.
		case c == which && !found:
			found = true
			b.WriteString(pad + "([0-9a-f.]+)" + pad)
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			b.WriteString(pad + ".*?" + pad)
		default:
			return nil, fmt.Errorf("log_line_prefix has no %%%c", c)
		}
	}
	if !found {
		return nil, errors.New("log_line_prefix has neither %p nor %c, so that sessions cannot be told apart: leave -prefix out")
	}
	return regexp.Compile(b.String())
}
