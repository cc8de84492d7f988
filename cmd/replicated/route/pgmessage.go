package route

import (
	"strconv"
	"strings"
	"time"
)

// pgMessage reads the message of a LOG entry of PostgreSQL, be it of log_statement,
// log_duration or log_min_duration_statement:
//
//	statement: SELECT 1
//	execute <unnamed>: SELECT $1
//	duration: 0.123 ms  statement: SELECT 1
//	duration: 0.123 ms  execute name/portal: SELECT $1
//	duration: 0.123 ms
//	disconnection: session time: 0:00:01.234 user=app …
//
// The last line but one belongs to the statement before it, which was logged by
// log_statement. Parsing and binding are no calls, and neither is fetching more of
// a portal. The words are those of lc_messages = C.
func pgMessage(message string) (e entry, ok bool) {
	took := unknownTime
	if rest, ok := strings.CutPrefix(message, "duration: "); ok {
		number, rest, ok := strings.Cut(rest, " ms")
		ms, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil {
			return entry{}, false
		}
		took = time.Duration(ms * float64(time.Millisecond))
		if rest == "" {
			return entry{took: took, note: noteTook}, true
		}
		message = strings.TrimLeft(rest, " ")
	}
	switch {
	case strings.HasPrefix(message, "statement: "):
		message = message[len("statement: "):]
	case strings.HasPrefix(message, "execute "):
		name, text, ok := strings.Cut(message[len("execute "):], ": ")
		if !ok || strings.HasPrefix(name, "fetch from ") {
			return entry{}, false
		}
		message = text
	case strings.HasPrefix(message, "disconnection: "), strings.HasPrefix(message, "connection received: "):
		return entry{note: noteEnded}, true
	default:
		return entry{}, false
	}
	e = statement(message)
	e.took = took
	return e, true
}
