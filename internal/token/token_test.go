package token_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/internal/token"
)

func must(p position.Position, err error) position.Position {
	if err != nil {
		panic(err)
	}
	return p
}

func gtidSet(text string) position.Position  { return must(position.ParseGTIDSet(text)) }
func gtidList(text string) position.Position { return must(position.ParseGTIDList(text)) }

func entry(cluster, lineage string, p position.Position) token.Entry {
	return token.Entry{Cluster: token.NameOf(cluster), Lineage: lineage, Position: p}
}

// hugeSet is a set that takes more than a token may: many servers with many gaps.
func hugeSet(servers, gaps int) position.Position {
	var b strings.Builder
	for s := range servers {
		fmt.Fprintf(&b, "%08x-1111-2222-3333-%012x", s, rand.Uint64()>>16)
		for g := range gaps {
			fmt.Fprintf(&b, ":%d-%d", 1000*g+1, 1000*g+500)
		}
		b.WriteByte(',')
	}
	return gtidSet(strings.TrimSuffix(b.String(), ","))
}

func parse(t *testing.T, text string) token.Token {
	t.Helper()
	tok, err := token.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tok
}

func equal(a, b token.Token) bool {
	return slices.EqualFunc(a, b, func(a, b token.Entry) bool {
		return a.Cluster == b.Cluster && a.Lineage == b.Lineage && a.Position.Equal(b.Position)
	})
}

func TestRoundTrip(t *testing.T) {
	mariaDB := gtidList("0-4294967295-18446744073709551615,1-4294967295-18446744073709551615,4294967295-4294967295-18446744073709551615,77-1-9,78-1-9")
	for _, tt := range []struct {
		name    string
		token   token.Token
		longest int
	}{
		{"nothing", nil, 0},
		{"PostgreSQL", token.Token{entry("7412345678901234567", "7412345678901234567/4294967295", position.FromLSN(1<<64-1))}, 200},
		{"MariaDB with domains", token.Token{entry("name", "", mariaDB)}, 200},
		{"MySQL", token.Token{entry("name", "", gtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-1000000:2000000-3000000"))}, 200},
		{"MySQL 5.6", token.Token{entry("name", "", position.FilePosition("3e11fa47-71ca-11e1-9e33-c80aa9429562", "binlog.000123", 1<<40))}, 200},
		{"heartbeat", token.Token{entry("name", "", position.BeatPosition(1<<64-1, 1<<64-1))}, 200},
		{"no position", token.Token{entry("name", "s/1", position.Position{})}, 200},
		{"several clusters", token.Merge(
			token.Token{entry("a", "", gtidList("0-1-5"))},
			token.Token{entry("b", "s/1", position.FromLSN(5))},
			token.Token{entry("b", "s/2", position.FromLSN(6))}), 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.token.String()
			if got := parse(t, text); !equal(got, tt.token) {
				t.Errorf("%v became %v", tt.token, got)
			}
			if len(text) > tt.longest {
				t.Errorf("%d bytes: %s", len(text), text)
			}
			if url.QueryEscape(text) != text {
				t.Errorf("%s is not safe in a URL", text)
			}
			if (text == "") != (len(tt.token) == 0) {
				t.Errorf("text %q", text)
			}
		})
	}
}

// What has been given out is read by all later versions.
func TestTextIsPinned(t *testing.T) {
	tok := token.Token{entry("system 4711", "4711/1", position.FromLSN(0x3000148))}
	const want = "AVaSWCpXvkjZBjQ3MTEvMQHIgoAYUmEOmQ"
	if got := tok.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// weaker tells whether a token asks for less than an entry: something that includes
// its position would do, and lacks the entry's.
func weaker(t token.Token, e token.Entry) bool {
	for _, x := range t {
		if x.Cluster == e.Cluster && x.Lineage == e.Lineage {
			return !x.Position.IsZero() && (e.Position.IsZero() || !x.Position.Includes(e.Position) && x.Position.Kind() != position.Nowhere)
		}
	}
	return true
}

func randomToken(rnd *rand.Rand) token.Token {
	var all []token.Token
	for range 1 + rnd.IntN(3) {
		var p position.Position
		switch rnd.IntN(8) {
		case 0:
		case 1:
			p = gtidList(fmt.Sprintf("%d-%d-%d", rnd.IntN(2), 1+rnd.IntN(2), 1+rnd.IntN(9)))
		case 2:
			p = gtidSet(fmt.Sprintf("0000000%d-0000-0000-0000-000000000000:%d-%d", rnd.IntN(3), 1+rnd.IntN(5), 6+rnd.IntN(5)))
		case 3:
			p = position.FilePosition(fmt.Sprint("s", rnd.IntN(2)), "b.01", uint64(rnd.IntN(9)))
		case 4:
			p = must(position.MariaDBPrimary("0-1-5", "0-2-3,0-1-5", 1))
		default:
			p = position.FromLSN(1 + uint64(rnd.IntN(9)))
		}
		all = append(all, token.Token{entry(fmt.Sprint(rnd.IntN(2)), fmt.Sprint(rnd.IntN(2)), p)})
	}
	return token.Merge(all...)
}

// Tokens are merged in whatever order they arrive.
func TestMergeLaws(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		a, b, c := randomToken(rnd), randomToken(rnd), randomToken(rnd)
		ab := token.Merge(a, b)
		for name, ok := range map[string]bool{
			"commutative":     equal(ab, token.Merge(b, a)),
			"associative":     equal(token.Merge(ab, c), token.Merge(a, token.Merge(b, c))),
			"idempotent":      equal(token.Merge(a, a), a) && equal(token.Merge(ab, b), ab),
			"nothing is zero": equal(token.Merge(a, nil), a),
			"survives text":   equal(parse(t, ab.String()), ab),
		} {
			if !ok {
				t.Fatalf("seed %d: not %s: %v, %v, %v", seed, name, a, b, c)
			}
		}
		for _, e := range slices.Concat(a, b) {
			if weaker(ab, e) {
				t.Fatalf("seed %d: %v merged with %v is %v, which asks for less than %v", seed, a, b, ab, e)
			}
		}
	}
}

func TestMergeLeavesItsArguments(t *testing.T) {
	a := token.Token{entry("a", "", position.FromLSN(5)), entry("b", "", position.FromLSN(5))}
	before := slices.Clone(a)
	token.Merge(a, token.Token{entry("a", "", position.FromLSN(9))})
	_ = append(token.Token{entry("a", "", hugeSet(200, 5))}, a...).String()
	if !reflect.DeepEqual(a, before) {
		t.Error("changed")
	}
}

// A position that does not fit gives way to "everything by now", the longest first.
func TestLongTokensAskForMore(t *testing.T) {
	small := entry("small", "", gtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"))
	for _, servers := range []int{1, 50, 100, 114, 115, 120, 1000} {
		huge := entry("huge", "", hugeSet(servers, 3))
		tok := token.Merge(token.Token{huge}, token.Token{small})
		text := tok.String()
		if len(text) > 4096 {
			t.Fatalf("%d servers: %d bytes", servers, len(text))
		}
		got := parse(t, text)
		if weaker(got, huge) || weaker(got, small) {
			t.Errorf("%d servers: %v asks for less", servers, got)
		}
		for _, e := range got {
			if whole := !e.Position.IsZero(); whole != (e.Cluster == small.Cluster || servers <= 100) {
				t.Errorf("%d servers: position kept: %v", servers, whole)
			}
		}
	}
	var many token.Token
	for i := range 200 {
		many = token.Merge(many, token.Token{entry(fmt.Sprint(i), "", hugeSet(2, 2))})
	}
	text := many.String()
	if len(text) > 4096 {
		t.Fatalf("%d bytes", len(text))
	}
	got := parse(t, text)
	for _, e := range many {
		if weaker(got, e) {
			t.Errorf("asks for less than %v", e)
		}
	}
}

// So many clusters that no positions fit, nor their names: it asks for all of all.
func TestTokenOfTooManyClusters(t *testing.T) {
	var many token.Token
	for i := range 1000 {
		many = token.Merge(many, token.Token{entry(fmt.Sprint(i), "", position.FromLSN(uint64(i)+1))})
	}
	got := parse(t, many.String())
	if len(got) != 1 || got[0].Cluster != token.Any || !got[0].Position.IsZero() {
		t.Errorf("%v", got)
	}
}

func TestMalformed(t *testing.T) {
	good := token.Token{entry("a", "s/1", position.FromLSN(5)), entry("b", "", position.FromLSN(9))}
	good = token.Merge(good)
	text := good.String()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(body ...byte) string {
		return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))))
	}
	body := raw[:len(raw)-4]
	one := slices.Clone(body[1:]) // two entries
	if sealed(body...) != text {
		t.Fatal("the test seals in another way")
	}
	primary := must(position.MariaDBPrimary("0-1-5", "0-2-3,0-1-5", 1))
	name := token.NameOf("a")
	for what, bad := range map[string]string{
		"cut off":             text[:len(text)-1],
		"… more":              text[:8],
		"longer":              text + "A",
		"padding":             text + "=",
		"a line break":        text[:5] + "\n" + text[5:],
		"standard alphabet":   "+" + text[1:],
		"a blank":             " " + text,
		"no entries":          sealed(1),
		"nothing":             "AA",
		"another version":     sealed(append([]byte{2}, one...)...),
		"no checksum":         base64.RawURLEncoding.EncodeToString(body),
		"half an entry":       sealed(body[:len(body)-1]...),
		"entries twice":       sealed(append(slices.Clone(body), one...)...),
		"rubbish behind":      sealed(append(slices.Clone(body), 7)...),
		"a long lineage":      sealed(slices.Concat([]byte{1}, name[:], []byte{65}, make([]byte, 65), []byte{0})...),
		"a lineage too short": sealed(slices.Concat([]byte{1}, name[:], []byte{9}, []byte("s/1"))...),
		"no lineage":          sealed(slices.Concat([]byte{1}, name[:])...),
		"a long varint":       sealed(slices.Concat([]byte{1}, name[:], []byte{0, 1, 0x85, 0})...),
		"an unknown position": sealed(slices.Concat([]byte{1}, name[:], []byte{0, 99})...),
		"a primary's sample":  sealed(primary.AppendBinary(slices.Concat([]byte{1}, name[:], []byte{0}))...),
		"too long":            strings.Repeat("A", 4097),
	} {
		if tok, err := token.Parse(bad); err == nil || tok != nil {
			t.Errorf("%s: %v, %v", what, tok, err)
		} else if strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error shows the token: %v", what, err)
		}
	}
	// The checksum finds every character that was mistyped.
	for i := range len(text) {
		for _, c := range "A_z9" {
			if bad := text[:i] + string(c) + text[i+1:]; bad != text {
				if tok, err := token.Parse(bad); err == nil {
					t.Errorf("character %d as %c: %v", i, c, tok)
				}
			}
		}
	}
	if tok, err := token.Parse(""); tok != nil || err != nil {
		t.Errorf("the empty token: %v, %v", tok, err)
	}
}

func TestNames(t *testing.T) {
	if a := token.NameOf("a"); a == token.NameOf("b") || a != token.NameOf(strings.Clone("a")) {
		t.Error("names tell clusters apart")
	}
}

// Whatever is accepted is written in the same way again, and merging it with itself
// changes nothing. The checksum is put right, so that the fuzzer gets past it.
func FuzzParse(f *testing.F) {
	for _, tok := range []token.Token{
		nil,
		{entry("a", "s/1", position.FromLSN(5))},
		{entry("a", "", gtidList("0-1-5,1-2-6"))},
		{entry("a", "", gtidSet("3e11fa47-71ca-11e1-9e33-c80aa9429562:tag:1-7:9"))},
		{entry("a", "", position.FilePosition("s", "b.01", 7)), entry("b", "", position.BeatPosition(1, 2))},
		{entry("a", "", position.Position{})},
	} {
		f.Add(token.Merge(tok).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, text := range []string{text, resealed(text)} {
			tok, err := token.Parse(text)
			if err != nil {
				continue
			}
			if again := tok.String(); again != text {
				t.Errorf("%q is written as %q", text, again)
			}
			if !equal(token.Merge(tok, tok), tok) {
				t.Errorf("%v merged with itself is %v", tok, token.Merge(tok, tok))
			}
		}
	})
}

func resealed(text string) string {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 4 {
		return text
	}
	b = b[:len(b)-4]
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}
