package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sqlreplicated/replicated/record"
)

func TestRead(t *testing.T) {
	const good = `{"v":1,"at":"2026-01-02T03:04:05Z","caller":"a","class":"read","n":2}`
	for _, tt := range []struct {
		name, text     string
		lines, skipped int64
	}{
		{"nothing", "", 0, 0},
		{"without an end", good, 1, 0},
		{"empty lines", "\n" + good + "\r\n\n" + good + "\n\n", 2, 0},
		{"a line that was cut off", good[:40] + "\n" + good + "\n", 1, 1},
		{"another program's log", "starting\n" + `{"level":"info","msg":"v"}` + "\n" + `{"v":"x"}` + "\n[1]\nnull\n" + good + "\n", 1, 5},
		{"another program's version", `{"level":30,"msg":"x","v":1}` + "\n" + good, 1, 1},
		{"further keys", good[:len(good)-1] + `,"zone":"b"}`, 1, 0},
		{"numbers that cannot be", `{"v":1,"class":"read","n":-1}` + "\n" + `{"v":0,"class":"read","n":1}` + "\n" + `{"v":1,"n":1e99}`, 0, 3},
		{"a line without end in between", good + "\n" + strings.Repeat("x", 300_000) + "\n" + good, 2, 1},
		{"a line without end at the end", good + "\n" + strings.Repeat("x", 300_000), 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text)), iotest.DataErrReader(strings.NewReader(tt.text))} {
				var n int64
				skipped, err := record.Read(in, func(l *record.Line) error {
					if l.Caller != "a" || l.N != 2 {
						t.Errorf("a line %+v", l)
					}
					n++
					return nil
				})
				if n != tt.lines || skipped != tt.skipped || err != nil {
					t.Errorf("%d lines, %d skipped, %v; want %d, %d", n, skipped, err, tt.lines, tt.skipped)
				}
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	const good = `{"v":1,"class":"read","n":1}` + "\n"
	broken := errors.New("broken")
	none := func(*record.Line) error { return nil }
	if _, err := record.Read(strings.NewReader(good+`{"v":2,"class":"read","n":1}`), none); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a later version: %v", err)
	}
	if _, err := record.Read(strings.NewReader(good), func(*record.Line) error { return broken }); err != broken {
		t.Errorf("an error of the function: %v", err)
	}
	for _, before := range []string{"", good, good[:5], strings.Repeat("x", 100_000)} {
		if _, err := record.Read(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)), none); err != broken {
			t.Errorf("an error of the reader behind %.10q: %v", before, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"v":1,"at":"2026-01-02T03:04:05Z","caller":"a","class":"read","keyword":"SELECT","reason":"shadow","role":"primary","n":2,"failed":1}`))
	f.Add([]byte("{\"v\":1,\"began\":true}\n\n{\"v\":1,\"dropped\":3}\nx\n{\"v\":1,\"notice\":\"pooler\",\"n\":1}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var again bytes.Buffer
		enc := json.NewEncoder(&again)
		var first []record.Line
		skipped, err := record.Read(bytes.NewReader(text), func(l *record.Line) error {
			if l.V != 1 || l.N < 0 || l.Failed < 0 || l.Dropped < 0 {
				t.Errorf("a line %+v", l)
			}
			first = append(first, *l)
			return enc.Encode(l)
		})
		if full := int64(bytes.Count(text, []byte("\n")) + 1); int64(len(first))+skipped > full {
			t.Errorf("%d lines and %d skipped ones of %d", len(first), skipped, full)
		}
		if err != nil {
			return
		}
		i := 0
		if skipped, err := record.Read(&again, func(l *record.Line) error {
			if !l.At.Equal(first[i].At) {
				t.Errorf("a time has become another: %v and %v", l.At, first[i].At)
			}
			l.At = first[i].At
			if *l != first[i] {
				t.Errorf("a line has become another: %+v and %+v", *l, first[i])
			}
			i++
			return nil
		}); skipped > 0 || err != nil || i != len(first) {
			t.Errorf("what was read cannot be read again: %d of %d lines, %d skipped, %v", i, len(first), skipped, err)
		}
	})
}
