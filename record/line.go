package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version is the version of the lines that this package writes.
const Version = 1

// Line is a line of a record. It tells one of four things:
//
//   - N statements of one kind have run since the line before (Class is set);
//   - Notice was told N times, a [replicated.NoticeKind] in words;
//   - Dropped statements are not in the record, because they had more kinds than
//     [Options.Kinds], or because a write has failed;
//   - Began: a process begins its record.
type Line struct {
	// V is the version of the format.
	V int `json:"v"`
	// At is when the line was written, in UTC.
	At time.Time `json:"at"`

	// Caller, Class, Keyword, Reason and Write are those of a
	// [replicated.RouteEvent]. Role is "primary" or "replica".
	Caller  string `json:"caller,omitempty"`
	Class   string `json:"class,omitempty"`
	Keyword string `json:"keyword,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Role    string `json:"role,omitempty"`
	Write   bool   `json:"write,omitempty"`

	// N is how many there were, Failed how many of them ended in an error.
	N      int64 `json:"n,omitempty"`
	Failed int64 `json:"failed,omitempty"`

	Notice  string `json:"notice,omitempty"`
	Dropped int64  `json:"dropped,omitempty"`
	Began   bool   `json:"began,omitempty"`
}

// maxLine is how long a line may be that is read. Those that are written are shorter.
const maxLine = 64 << 10

// Read calls each with every line of a record, in their order. The Line is good until
// each returns. Lines that are none of a record (a log that the record was written
// into, a line that a full disk has cut off) are left out, and skipped is how many
// there were. Read returns the error of in or of each, and an error for a version that
// it does not know.
func Read(in io.Reader, each func(*Line) error) (skipped int64, err error) {
	r := bufio.NewReaderSize(in, maxLine)
	for {
		text, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			skipped++
			if err := toLineEnd(r); err != nil {
				return skipped, ignoreEOF(err)
			}
			continue
		case err != nil && err != io.EOF:
			return skipped, err
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var l Line
			switch {
			case json.Unmarshal(text, &l) != nil || l.V <= 0 || l.N < 0 || l.Failed < 0 || l.Dropped < 0:
				skipped++
			case l.V > Version:
				return skipped, fmt.Errorf("record: a line has version %d of the format, and this program knows %d", l.V, Version)
			case l.Class == "" && l.Notice == "" && l.Dropped == 0 && !l.Began:
				skipped++
			default:
				if err := each(&l); err != nil {
					return skipped, err
				}
			}
		}
		if err == io.EOF {
			return skipped, nil
		}
	}
}

// toLineEnd skips the rest of a line.
func toLineEnd(r *bufio.Reader) error {
	for {
		if _, err := r.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
