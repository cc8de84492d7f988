package position

import (
	"fmt"
	"strconv"
	"strings"
)

// file is a place in the binary log of one server. The log is a sequence of
// files whose names differ in the number behind the last dot, which only grows
// (MYSQL_BIN_LOG::generate_new_name in sql/binlog.cc: six digits or more).
type file struct {
	source string // server_uuid of the server whose log it is
	base   string // name without the number and its dot
	number uint64
	offset uint64
}

// maxName bounds the names that are believed: FN_REFLEN of MySQL's
// include/my_io.h.
const maxName = 512

// FilePosition returns a place in a binary log: File and Position of a primary's
// SHOW MASTER STATUS, Relay_Master_Log_File and Exec_Master_Log_Pos of a
// replica's SHOW SLAVE STATUS. source is the server_uuid of the server whose log
// it is: the primary's own, the replica's Master_UUID. The name of the file comes
// without a directory.
//
// Without a source or a file the position is empty: the source is not known, or
// the replica has applied nothing yet. A file whose name does not end in a dot
// and a number is not of a binary log, and there is no position: the result is
// zero.
func FilePosition(source, name string, offset uint64) Position {
	if source == "" || name == "" {
		return Position{file{}}
	}
	base, number, ok := cutNumber(name)
	if !ok || len(source) > maxName || len(name) > maxName {
		return Position{}
	}
	return Position{file{source, base, number, offset}}
}

// cutNumber splits "binlog.000009". Files are compared by number, since
// binlog.999999 is followed by binlog.1000000.
func cutNumber(name string) (base string, number uint64, ok bool) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 || dot+1 == len(name) {
		return "", 0, false
	}
	for _, c := range []byte(name[dot+1:]) {
		if c < '0' || c > '9' {
			return "", 0, false
		}
	}
	number, err := strconv.ParseUint(name[dot+1:], 10, 64)
	return name[:dot], number, err == nil
}

func (f file) kind() Kind         { return File }
func (f file) empty() bool        { return f.source == "" }
func (f file) equal(q value) bool { return f == q.(file) }
func (f file) token() value       { return f }

// sameLog reports whether the two places are in one log.
func (f file) sameLog(q file) bool { return f.source == q.source && f.base == q.base }

// after reports whether f is after q in their common log.
func (f file) after(q file) bool {
	return f.number > q.number || f.number == q.number && f.offset > q.offset
}

func (f file) contains(v value) bool {
	q := v.(file)
	return f.sameLog(q) && !q.after(f)
}

func (f file) includes(t value) bool { return f.contains(t) }

func (f file) exceeds(v value) bool {
	q := v.(file)
	return !f.sameLog(q) || f.after(q)
}

func (f file) merge(q value) value {
	switch {
	case f.contains(q):
		return f
	case q.contains(f):
		return q
	}
	return nowhere{}
}

func (f file) appendText(b []byte) []byte {
	if f.empty() {
		return b
	}
	return fmt.Appendf(b, "%s:%s.%06d:%d", f.source, f.base, f.number, f.offset)
}
