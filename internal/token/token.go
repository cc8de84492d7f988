// Package token reads and writes causal tokens: what one process has written, so
// that another one, or the same one's next request, can ask to see it.
//
// A token is a list of entries, one for each cluster and lineage that it speaks
// of. Tokens are merged by union, so that the order in which they arrive does not
// matter. The text is safe in URLs, cookies and headers.
//
//	text   = base64url, without padding, of the bytes
//	bytes  = version (1), entries, checksum (4: CRC-32C of all before it)
//	entry  = cluster (8), length (1) and text of the lineage, position
//
// The checksum finds a token that was cut off or mistyped. It keeps nobody from
// forging one: what that gains is at most that his own reads go to the primary.
package token

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/sqlreplicated/replicated/internal/position"
)

const (
	version = 1

	// maxText is the longest token that is read.
	maxText = 4096
)

// Cluster names a cluster in a token: a hash of its identity.
type Cluster [8]byte

// Any stands for every cluster: for what was written to one that is not known.
var Any Cluster

// NameOf returns the name of the cluster with this identity.
func NameOf(identity string) Cluster {
	sum := sha256.Sum256([]byte(identity))
	return Cluster(sum[:8])
}

// Entry is what a token says of one lineage of one cluster.
type Entry struct {
	Cluster Cluster
	// Lineage is the history that the position belongs to, "" where positions name
	// it themselves.
	Lineage string
	// Position is at or after what was written. The zero Position means that it is
	// not known or too long to say: all that has been acknowledged so far.
	Position position.Position
}

// Token is a list of entries in canonical order, at most one for each cluster and
// lineage. The nil Token asks for nothing.
type Token []Entry

// Merge returns a token that asks for all that its arguments ask for, in whatever
// order and however often they come. What is made of positions that no server can
// have together (logs of two servers of MySQL 5.6) none ever has.
func Merge(tokens ...Token) Token {
	var all Token
	for _, t := range tokens {
		for _, e := range t {
			i, found := slices.BinarySearchFunc(all, e, compare)
			switch {
			case !found:
				e.Position = e.Position.Token()
				all = slices.Insert(all, i, e)
			case all[i].Position.IsZero():
			case e.Position.IsZero():
				all[i].Position = position.Position{}
			default:
				all[i].Position = all[i].Position.Merge(e.Position)
			}
		}
	}
	return all
}

func compare(a, b Entry) int {
	if c := bytes.Compare(a.Cluster[:], b.Cluster[:]); c != 0 {
		return c
	}
	return strings.Compare(a.Lineage, b.Lineage)
}

var encoding = base64.RawURLEncoding.Strict()

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// String returns the token's text, "" for one that asks for nothing.
//
// Where it would be longer than 4 KiB, the longest positions are left out: their
// entries then ask for all that has been acknowledged by the time that the token is
// read, which is more, never less. Where there are so many clusters that it would be
// longer all the same, it asks that of every cluster.
func (t Token) String() string {
	if len(t) == 0 {
		return ""
	}
	t = Merge(t) // a copy, in order
	for {
		b := []byte{version}
		longest, size := -1, 0
		for i, e := range t {
			before := len(b)
			b = e.append(b)
			if n := len(b) - before; n > size && !e.Position.IsZero() {
				longest, size = i, n
			}
		}
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		switch {
		case encoding.EncodedLen(len(b)) <= maxText:
			return encoding.EncodeToString(b)
		case longest < 0:
			t = Token{{Cluster: Any}}
		default:
			t[longest].Position = position.Position{}
		}
	}
}

func (e Entry) append(b []byte) []byte {
	b = append(b, e.Cluster[:]...)
	b = append(b, byte(len(e.Lineage)))
	b = append(b, e.Lineage...)
	return e.Position.AppendBinary(b)
}

var errMalformed = errors.New("replicated: malformed token: it was cut off, changed, or made by something else")

// Parse reads a token's text. It accepts what String has written and nothing else,
// takes time linear in the text's length, and never panics.
func Parse(text string) (Token, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, errMalformed
	}
	b, err := encoding.DecodeString(text)
	if err != nil || len(b) <= 5 || b[0] != version || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return nil, errMalformed
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errMalformed
	}
	var t Token
	for body = body[1:]; len(body) > 0; {
		var e Entry
		if e, body, err = parseEntry(body); err != nil {
			return nil, errMalformed
		}
		if n := len(t); n > 0 && compare(t[n-1], e) >= 0 {
			return nil, errMalformed
		}
		t = append(t, e)
	}
	return t, nil
}

// maxLineage is the longest lineage: "system identifier/timeline" has 31 bytes. Its
// length is one byte.
const maxLineage = 64

func parseEntry(b []byte) (e Entry, rest []byte, err error) {
	if len(b) < len(e.Cluster) {
		return e, nil, errMalformed
	}
	b = b[copy(e.Cluster[:], b):]
	if len(b) == 0 || b[0] > maxLineage || len(b)-1 < int(b[0]) {
		return e, nil, errMalformed
	}
	n := 1 + int(b[0])
	e.Lineage = string(b[1:n])
	if e.Position, rest, err = position.Decode(b[n:]); err != nil || !e.Position.Equal(e.Position.Token()) {
		return e, nil, errMalformed
	}
	return e, rest, nil
}
