package position

import (
	"fmt"
	"strconv"
	"strings"
)

// lsn is a log sequence number of PostgreSQL: a byte offset in the write-ahead
// log of a timeline. 0 is InvalidXLogRecPtr (access/xlogdefs.h).
type lsn uint64

// Lengths of the headers of a page of the write-ahead log, and of the longer one
// of the first page of a segment file: SizeOfXLogShortPHD and SizeOfXLogLongPHD
// of access/xlog_internal.h where maximum alignment is 8.
const (
	pageHeader    = 24
	segmentHeader = 40
)

// ParseLSN reads PostgreSQL's notation, two hexadecimal numbers of 32 bits as in
// "16/B374D848" (pg_lsn_in in utils/adt/pg_lsn.c). Blanks are an error.
func ParseLSN(s string) (Position, error) {
	n, err := parseLSN(s)
	if err != nil {
		return Position{}, err
	}
	return FromLSN(n), nil
}

func parseLSN(s string) (uint64, error) {
	high, low, ok := strings.Cut(s, "/")
	if !ok || !hexWord(high) || !hexWord(low) {
		return 0, fmt.Errorf("position: not an LSN: %s", quote(s))
	}
	// hexWord has checked all that could be an error here.
	h, _ := strconv.ParseUint(high, 16, 32)
	l, _ := strconv.ParseUint(low, 16, 32)
	return h<<32 | l, nil
}

func hexWord(s string) bool {
	if len(s) < 1 || len(s) > 8 {
		return false
	}
	for _, c := range []byte(s) {
		if _, ok := hexDigit(c); !ok {
			return false
		}
	}
	return true
}

// FromLSN returns the position of an LSN that is at hand as a number.
func FromLSN(n uint64) Position { return Position{lsn(n)} }

// LSN returns the log sequence number, 0 for other kinds of positions.
func (p Position) LSN() uint64 {
	n, _ := p.v.(lsn)
	return uint64(n)
}

// InsertLSN reads what pg_current_wal_insert_lsn() returns and turns it into a
// position that a replica can reach. blockSize and segmentSize are the server's
// wal_block_size and wal_segment_size in bytes.
//
// The function returns where the next record will begin
// (XLogBytePosToRecPtr in access/transam/xlog.c). If the last record ends with
// its page, that is behind the header of the next page, whereas a replica that
// has replayed the record stands before the header
// (XLogBytePosToEndRecPtr), for as long as nothing more is written. No record
// ends inside or right behind a header, so that the two cannot be confused.
func InsertLSN(s string, blockSize, segmentSize uint64) (Position, error) {
	if !sizes(blockSize, segmentSize) {
		return Position{}, fmt.Errorf("position: no sizes of a write-ahead log: wal_block_size %d, wal_segment_size %d", blockSize, segmentSize)
	}
	n, err := parseLSN(s)
	if err != nil {
		return Position{}, err
	}
	// The first page of a segment has the long header, and only that.
	switch offset := n % segmentSize; {
	case offset == segmentHeader:
		n -= segmentHeader
	case offset >= blockSize && offset%blockSize == pageHeader:
		n -= pageHeader
	}
	return FromLSN(n), nil
}

// sizes checks the sizes that a server can be built and initialised with:
// powers of two, pages of 1 to 64 kB, segments of 1 MB to 1 GB
// (--with-wal-blocksize of configure, --wal-segsize of initdb).
func sizes(block, segment uint64) bool {
	return power(block, 1<<10, 64<<10) && power(segment, 1<<20, 1<<30)
}

func power(n, low, high uint64) bool { return n&(n-1) == 0 && n >= low && n <= high }

func (n lsn) kind() Kind            { return LSN }
func (n lsn) empty() bool           { return n == 0 }
func (n lsn) equal(q value) bool    { return n == q.(lsn) }
func (n lsn) contains(q value) bool { return n >= q.(lsn) }
func (n lsn) exceeds(q value) bool  { return n > q.(lsn) }
func (n lsn) includes(t value) bool { return n >= t.(lsn) }
func (n lsn) merge(q value) value   { return max(n, q.(lsn)) }
func (n lsn) token() value          { return n }

func (n lsn) appendText(b []byte) []byte { return fmt.Appendf(b, "%X/%X", uint32(n>>32), uint32(n)) }
