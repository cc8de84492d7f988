package position

import (
	"fmt"
	"strconv"
)

// maxText bounds the text of a position. A server's gtid_executed is one line
// for each server that ever wrote, and grows by a few bytes for each hole.
const maxText = 16 << 20

func errTooLong(s string) error {
	return fmt.Errorf("position: text of %d bytes, more than %d", len(s), maxText)
}

// quote shows the beginning of a text that could not be read.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// decimal reads a number of digits alone, without leading zeros: servers print
// none, and some read one as the sign of an octal number.
func decimal(s string, most uint64) (uint64, bool) {
	if s == "" || len(s) > 20 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range []byte(s) {
		digit := uint64(c - '0')
		if digit > 9 || n > (most-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}
