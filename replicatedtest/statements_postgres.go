package replicatedtest

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// PostgreSQL writes its log to standard error, which is a file that all its
// processes append to: each message is one write, made by the session itself
// before it goes on. (With the logging collector, which the CSV format needs, it
// would go through another process and arrive later.) A message is one line
// with the prefix below, and further lines begin with a tab that is not part of
// the text, so that texts of many lines come out exactly.
const (
	pgLogPrefix = "%n|%p|%u|%e|" // time, process, user, SQLSTATE
	pgLogFields = 4
)

// pgLog parses that. The zero value is ready.
type pgLog struct {
	rest   []byte // what came after the last complete message
	open   int    // length of the list if the last message is its last entry, else 0
	failed map[int64]pgFailure
}

// pgFailure is an error of a session whose STATEMENT line is to come.
type pgFailure struct {
	code string // SQLSTATE
	when time.Time
}

func (p *pgLog) add(data []byte, list []Statement) []Statement {
	p.rest = append(p.rest, data...)
	for len(p.rest) > 0 {
		end, ok := messageEnd(p.rest)
		if !ok {
			break
		}
		text := string(p.rest[:end])
		if text[0] != '\t' {
			list = p.message(text, end == len(p.rest), list)
		} else if p.open > 0 && p.open == len(list) {
			// The file was read while a message of many lines was being written.
			list[p.open-1].Text += "\n" + strings.TrimSuffix(untab(text[1:]), "\n")
		}
		p.rest = p.rest[end:]
	}
	return list
}

// messageEnd finds the end of the first message: a newline that no tab
// follows. At the end of the data it is one too, since a message is written as
// a whole.
func messageEnd(data []byte) (int, bool) {
	for at := 0; ; {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return 0, false
		}
		at += i + 1
		if at == len(data) || data[at] != '\t' {
			return at, true
		}
	}
}

// message takes one message; last says that the file ends after it, perhaps in
// its midst.
func (p *pgLog) message(text string, last bool, list []Statement) []Statement {
	p.open = 0
	fields := strings.SplitN(text, "|", pgLogFields+1)
	if len(fields) != pgLogFields+1 {
		return list // not from the log: a linker or a shell complaining
	}
	session, err := strconv.ParseInt(fields[1], 10, 64)
	user := fields[2]
	if err != nil || user == "" || internalUser(user) {
		return list
	}
	code, body := fields[3], fields[pgLogFields]
	severity, body, ok := strings.Cut(body, ":  ")
	if !ok {
		return list
	}
	body = untab(strings.TrimSuffix(body, "\n"))
	when := epoch(fields[0])
	switch severity {
	case "LOG":
		kind, text := pgStatement(body)
		if kind != 0 {
			list = append(list, Statement{Time: when, User: user, Session: session, Kind: kind, Text: text})
			p.open = len(list)
		}
	case "ERROR", "FATAL":
		if p.failed == nil {
			p.failed = map[int64]pgFailure{}
		}
		p.failed[session] = pgFailure{code: code, when: when}
	case "STATEMENT":
		failed, ok := p.failed[session]
		if !ok {
			break
		}
		delete(p.failed, session)
		if s := lastOf(list, session); s != nil && s.Kind != Prepare && s.Code == "" &&
			(s.Text == body || last && strings.HasPrefix(s.Text, body+"\n")) {
			s.Code = failed.code
			break
		}
		list = append(list, Statement{Time: failed.when, User: user, Session: session, Kind: Refused, Text: body, Code: failed.code})
		p.open = len(list)
	}
	return list
}

// untab undoes what the server does to the lines of a message.
func untab(text string) string { return strings.ReplaceAll(text, "\n\t", "\n") }

// pgStatement takes the server's words off a statement:
//
//	statement: SELECT 1
//	execute <unnamed>: SELECT $1
//	execute name/portal: SELECT $1
//	duration: 0.123 ms  parse <unnamed>: SELECT $1
func pgStatement(body string) (Kind, string) {
	if text, ok := strings.CutPrefix(body, "statement: "); ok {
		return Query, text
	}
	if rest, ok := strings.CutPrefix(body, "execute "); ok {
		if _, text, ok := strings.Cut(rest, ": "); ok {
			return Execute, text
		}
	}
	if rest, ok := strings.CutPrefix(body, "duration: "); ok {
		if _, rest, ok := strings.Cut(rest, " ms  parse "); ok {
			if _, text, ok := strings.Cut(rest, ": "); ok {
				return Prepare, text
			}
		}
	}
	return 0, ""
}

// lastOf returns the session's latest entry, or nil.
func lastOf(list []Statement, session int64) *Statement {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Session == session {
			return &list[i]
		}
	}
	return nil
}

// epoch reads seconds since 1970 with a fraction.
func epoch(text string) time.Time {
	seconds, fraction, _ := strings.Cut(text, ".")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	ms, err2 := strconv.ParseInt(fraction, 10, 64)
	if err1 != nil || err2 != nil {
		return time.Time{}
	}
	return time.Unix(s, ms*int64(time.Millisecond)).UTC()
}
