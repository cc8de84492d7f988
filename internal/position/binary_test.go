package position_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
)

// assorted has positions of every kind, zero, empty and nowhere among them.
func assorted() []position.Position {
	all := []position.Position{{}, lsn("0/1").Merge(gtidSet(uuidA + ":1"))}
	for kind, list := range samples() {
		all = append(append(all, list...), empties()[kind])
	}
	return all
}

func TestDecodeReadsWhatAppendBinaryWrites(t *testing.T) {
	list := assorted()
	for kind, generate := range generators {
		rnd := rand.New(rand.NewPCG(5, uint64(kind)))
		for range 500 {
			list = append(list, generate(rnd))
		}
	}
	for _, p := range list {
		b := p.AppendBinary([]byte("before"))
		if string(b[:6]) != "before" {
			t.Fatalf("%q overwrites what is before it", p)
		}
		q, rest, err := position.Decode(append(b[6:], "behind"...))
		if err != nil || !q.Equal(p) || q.Kind() != p.Kind() || q.String() != p.String() || string(rest) != "behind" {
			t.Fatalf("%v %q is decoded as %v %q before %q: %v", p.Kind(), p, q.Kind(), q, rest, err)
		}
		for cut := range b[6:] {
			if q, rest, err := position.Decode(b[6 : 6+cut]); err == nil || !q.IsZero() || rest != nil {
				t.Fatalf("%v %q cut to %d bytes is decoded as %q", p.Kind(), p, cut, q)
			}
		}
	}
}

// The formats are in the tokens of running programs. A change needs a new first
// byte, and the old ones stay readable.
func TestFormatsDoNotChange(t *testing.T) {
	for _, test := range []struct {
		p    position.Position
		want string
	}{
		{position.Position{}, "\x00"},
		{lsn("0/0"), "\x01\x00"},
		{lsn("16/B374D848"), "\x01\xc8\xb0\xd3\x9b\xeb\x02"},
		{gtidSet(""), "\x02\x00"},
		{gtidSet(uuidA + ":1-5:7," + uuidB + ":t:3"), "\x02\x02" + strings.Repeat("\x11", 16) + "\x00\x02\x00\x04\x00\x00" + strings.Repeat("\x22", 16) + "\x01t\x01\x02\x00"},
		{gtidList("0-1-100,7-300-1"), "\x03\x02\x00\x01\x64\x07\xac\x02\x01"},
		{primary("0-2-101", "0-1-100,0-2-101", 2), "\x04\x02\x01\x00\x02\x65\x02\x00\x01\x64\x00\x02\x65"},
		{position.FilePosition("u", "binlog.000300", 4), "\x05\x01u\x06binlog\xac\x02\x04"},
		{position.FilePosition("", "", 0), "\x05\x00"},
		{position.BeatPosition(1, 300), "\x06\x01\xac\x02"},
		{position.BeatPosition(1, 1).Merge(position.BeatPosition(2, 1)), "\x07"},
	} {
		if got := test.p.AppendBinary(nil); string(got) != test.want {
			t.Errorf("%v %q is encoded as %q, want %q", test.p.Kind(), test.p, got, test.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	uuid := strings.Repeat("\x11", 16)
	for name, text := range map[string]string{
		"nothing":                           "",
		"an unknown format":                 "\x08",
		"a number with a needless byte":     "\x01\x80\x00",
		"a number above 64 bits":            "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"more servers than there is room":   "\x02\xff\xff\xff\xff\x0f",
		"a server without numbers":          "\x02\x01" + uuid + "\x00\x00" + "\x00\x00",
		"a server twice":                    "\x02\x02" + uuid + "\x00\x01\x00\x00" + uuid + "\x00\x01\x05\x00",
		"servers out of order":              "\x02\x02" + uuid + "\x01t\x01\x00\x00" + uuid + "\x01s\x01\x00\x00",
		"a tag that is none":                "\x02\x01" + uuid + "\x01-\x01\x00\x00",
		"a tag in upper case":               "\x02\x01" + uuid + "\x01T\x01\x00\x00",
		"a tag that begins with a digit":    "\x02\x01" + uuid + "\x021t\x01\x00\x00",
		"a tag too long":                    "\x02\x01" + uuid + "\x21" + strings.Repeat("t", 33) + "\x01\x00\x00",
		"a span beyond the highest number":  "\x02\x01" + uuid + "\x00\x01\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
		"a span behind the highest number":  "\x02\x01" + uuid + "\x00\x02\x00\xfd\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00",
		"more GTIDs than there is room":     "\x03\x05\x00\x01\x01",
		"a domain above 32 bits":            "\x03\x01\x80\x80\x80\x80\x10\x01\x01",
		"a server above 32 bits":            "\x03\x01\x00\x80\x80\x80\x80\x10\x01",
		"GTIDs out of order":                "\x03\x02\x00\x02\x01\x00\x01\x01",
		"a GTID twice":                      "\x03\x02\x00\x01\x01\x00\x01\x02",
		"a primary without an id":           "\x04\x00\x00\x00",
		"a primary without its last":        "\x04\x01\x01\x00\x01\x05\x00",
		"a primary with another last":       "\x04\x01\x01\x00\x01\x05\x01\x00\x01\x06",
		"a primary with two lasts":          "\x04\x01\x02\x00\x01\x05\x00\x02\x05\x02\x00\x01\x05\x00\x02\x05",
		"a primary's id above 32 bits":      "\x04\x80\x80\x80\x80\x10\x00\x00",
		"a file of no name":                 "\x05\x01u\x00\x01\x04",
		"a source longer than what follows": "\x05\x7fu",
	} {
		if p, rest, err := position.Decode([]byte(text)); err == nil || !p.IsZero() || rest != nil {
			t.Errorf("%s is decoded as %v %q", name, p.Kind(), p)
		}
	}
	if p, _, err := position.Decode([]byte("\x02\x01" + uuid + "\x00\x01\x00\xfd\xff\xff\xff\xff\xff\xff\xff\x7f")); err != nil || p.String() != uuidA+":1-9223372036854775806" {
		t.Errorf("the longest span is %q, %v", p, err)
	}
}

// TestEncodingsAreShort: tokens travel in cookies and headers.
func TestEncodingsAreShort(t *testing.T) {
	for _, test := range []struct {
		name string
		p    position.Position
		most int
	}{
		{"LSN", lsn("FFFFFFFF/FFFFFFFF"), 11},
		{"LSN of an old cluster", lsn("F00/12345678"), 8},
		{"MariaDB", gtidList("0-1-1000000"), 7},
		{"MariaDB with the largest numbers", gtidList("4294967295-4294967295-18446744073709551615"), 22},
		{"MariaDB after failovers, in two domains", gtidList("0-18100-900000000,0-18101-900000100,0-18102-900000200,1-18100-70000"), 45},
		{"MariaDB primary", primary("0-18102-900000200", "0-18100-900000000,0-18101-900000100,0-18102-900000200", 18102), 50},
		{"MySQL", gtidSet(uuidA + ":1-9000000000"), 27},
		{"MySQL after two failovers", gtidSet(uuidA + ":1-9000000000," + uuidB + ":1-8000000," + uuidC + ":1-3:5-77"), 72},
	} {
		if got := len(test.p.AppendBinary(nil)); got > test.most {
			t.Errorf("%s: %d bytes, want at most %d", test.name, got, test.most)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range assorted() {
		f.Add(p.AppendBinary(nil))
	}
	f.Add([]byte("\x02\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, rest, err := position.Decode(b)
		if err != nil {
			return
		}
		if again := p.AppendBinary(nil); !bytes.Equal(append(again, rest...), b) {
			t.Fatalf("%x is decoded as %v %q, whose encoding is %x", b, p.Kind(), p, again)
		}
		sane(t, p)
	})
}

// sane checks that a position from anywhere keeps the laws.
func sane(t *testing.T, p position.Position) {
	t.Helper()
	if !p.Equal(p) || p.Exceeds(p) {
		t.Errorf("%v %q is not itself", p.Kind(), p)
	}
	if something := !p.IsZero() && !p.IsEmpty() && p.Kind() != position.Nowhere; p.Includes(p) != something {
		t.Errorf("%v %q includes itself: %t", p.Kind(), p, !something)
	}
	if !p.Merge(p).Equal(p.Token()) || len(p.Token().AppendBinary(nil)) > len(p.AppendBinary(nil)) {
		t.Errorf("%v %q has the token %q", p.Kind(), p, p.Token())
	}
}

func FuzzParseLSN(f *testing.F) {
	f.Add("16/B374D848")
	f.Fuzz(func(t *testing.T, text string) { fuzzText(t, text, position.ParseLSN) })
}

func FuzzParseGTIDSet(f *testing.F) {
	f.Add(uuidA + ":1-5:7:t:1-2,\n" + uuidB + ":3")
	f.Add(uuidA + ":9:1-3 , " + uuidA + ":4")
	f.Fuzz(func(t *testing.T, text string) { fuzzText(t, text, position.ParseGTIDSet) })
}

func FuzzParseGTIDList(f *testing.F) {
	f.Add("0-1-100,1-2-3")
	f.Fuzz(func(t *testing.T, text string) { fuzzText(t, text, position.ParseGTIDList) })
}

// fuzzText checks that what is read is printed, and read again, as the same.
func fuzzText(t *testing.T, text string, parse func(string) (position.Position, error)) {
	p, err := parse(text)
	if err != nil {
		if !p.IsZero() {
			t.Fatalf("%q is an error and %q", text, p)
		}
		return
	}
	q, err := parse(p.String())
	if err != nil || !q.Equal(p) || q.String() != p.String() {
		t.Fatalf("%q is printed as %q and read as %q: %v", text, p, q, err)
	}
	r, rest, err := position.Decode(p.AppendBinary(nil))
	if err != nil || len(rest) > 0 || !r.Equal(p) {
		t.Fatalf("%q is decoded as %q: %v", p, r, err)
	}
	sane(t, p)
}

func FuzzFilePosition(f *testing.F) {
	f.Add(uuidA, "binlog.000001", uint64(4))
	f.Fuzz(func(t *testing.T, source, name string, offset uint64) {
		p := position.FilePosition(source, name, offset)
		q, _, err := position.Decode(p.AppendBinary(nil))
		if err != nil || !q.Equal(p) {
			t.Fatalf("%q is decoded as %q: %v", p, q, err)
		}
		sane(t, p)
	})
}
