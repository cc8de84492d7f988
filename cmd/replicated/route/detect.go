package route

import (
	"bytes"
	"errors"
	"regexp"
)

// detectSize is how much of a log is looked at.
const detectSize = 64 << 10

var csvStart = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [^,"]+,`)

// detect finds out which log begins so: the format that most of its lines have.
func detect(head []byte) (*format, error) {
	votes := map[string]int{}
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case bytes.HasPrefix(line, []byte(`{"v":`)) && bytes.Contains(line, []byte(`"at":`)):
			votes["record"]++
		case len(line) > 0 && line[0] == '{' && bytes.Contains(line, []byte(`"error_severity"`)):
			votes["pgjson"]++
		case csvStart.Match(line) && bytes.Count(line, []byte(",")) >= 10:
			votes["pgcsv"]++
		case bytes.HasPrefix(line, []byte("# User@Host: ")), bytes.HasPrefix(line, []byte("# Query_time: ")):
			votes["mysqlslow"]++
		default:
			if _, _, _, ok := mysqlEntry(line); ok {
				votes["mysqlgeneral"]++
			} else if _, _, _, ok := cutSeverity(line); ok {
				votes["pglog"]++
			}
		}
	}
	best := ""
	for i := range formats {
		if n := votes[formats[i].name]; n > votes[best] {
			best = formats[i].name
		}
	}
	if best == "" {
		return nil, errors.New("this looks like none of the logs that can be read: name its format with -input, or see docs/route.md")
	}
	return formatNamed(best)
}
