package replicatedtest

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mysqlLog parses the general query log of MariaDB and MySQL, as the server
// writes it to a file, before it executes the statement. The zero value is
// ready.
//
//	251129 22:53:14	     5 Connect	app@127.0.0.1 on app using TCP/IP
//			     5 Query	select 1,
//	2
//	2025-11-29T22:53:14.123456Z	    5 Execute	select 1    (MySQL since 5.7)
//
// The time is left out where it is the same second. Texts are written as they
// are, so that a line of a text could look like an entry; a test that writes
// such a text gets what it asked for.
type mysqlLog struct {
	rest  []byte // what came after the last newline
	open  int    // length of the list if the last entry is its last, else 0
	now   time.Time
	users map[int64]string // by connection, since the server started
}

var (
	mysqlEntry = regexp.MustCompile(`(?m)^(?:(\d{6} [ \d]?\d:\d\d:\d\d)\t|(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))\t|\t\t) *(\d+) ([A-Z][A-Za-z]+(?: [A-Za-z]+)*)\t`)
	// mysqlBanner begins the log of every start of the server: connections are
	// numbered from 1 again.
	mysqlBanner = regexp.MustCompile(`(?m)^\S*(?:mysqld|mariadbd)\S*, Version: .*\n(?:Tcp port: .*\n)?(?:Time +Id +Command.*\n)?`)
)

func (p *mysqlLog) add(data []byte, list []Statement) []Statement {
	p.rest = append(p.rest, data...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	text := p.rest[:end]
	for len(text) > 0 {
		banner := mysqlBanner.FindIndex(text)
		upTo := len(text)
		if banner != nil {
			upTo = banner[0]
		}
		list = p.entries(text[:upTo], list)
		if banner == nil {
			break
		}
		p.users, p.open = nil, 0
		text = text[banner[1]:]
	}
	p.rest = append([]byte(nil), p.rest[end:]...)
	return list
}

func (p *mysqlLog) entries(text []byte, list []Statement) []Statement {
	found := mysqlEntry.FindAllSubmatchIndex(text, -1)
	head := len(text)
	if len(found) > 0 {
		head = found[0][0]
	}
	if head > 0 && p.open > 0 && p.open == len(list) {
		// The file was read while an entry of many lines was being written.
		list[p.open-1].Text += "\n" + string(bytes.TrimSuffix(text[:head], []byte("\n")))
	}
	for i, m := range found {
		group := func(k int) string {
			if m[2*k] < 0 {
				return ""
			}
			return string(text[m[2*k]:m[2*k+1]])
		}
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		argument := string(bytes.TrimSuffix(text[m[1]:end], []byte("\n")))
		p.clock(group(1), group(2))
		p.open = 0
		id, _ := strconv.ParseInt(group(3), 10, 64)
		switch command := group(4); command {
		case "Connect":
			if p.users == nil {
				p.users = map[int64]string{}
			}
			p.users[id], _, _ = strings.Cut(argument, "@")
		case "Quit":
			delete(p.users, id)
		case "Query", "Prepare", "Execute":
			// The threads of a replica that apply what it receives have no
			// Connect entry.
			user, ok := p.users[id]
			if !ok || internalUser(user) {
				continue
			}
			kind := map[string]Kind{"Query": Query, "Prepare": Prepare, "Execute": Execute}[command]
			list = append(list, Statement{Time: p.now, User: user, Session: id, Kind: kind, Text: argument})
			p.open = len(list)
		}
	}
	return list
}

// clock reads the time of an entry, which stands for those that follow.
func (p *mysqlLog) clock(short, long string) {
	switch {
	case short != "":
		if t, err := time.ParseInLocation("060102 15:04:05", strings.Replace(short, "  ", " 0", 1), time.UTC); err == nil {
			p.now = t
		}
	case long != "":
		if t, err := time.Parse(time.RFC3339Nano, long); err == nil {
			p.now = t.UTC()
		}
	}
}
