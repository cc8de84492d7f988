package httpsticky

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// signer makes and checks the values of cookies and headers:
//
//	v1.<issued>.<token>.<mac>
//
// issued is the time in seconds since 1970, in base 36; mac is the HMAC-SHA-256 of
// the version, what carries the value, issued and token, in base64url.
type signer struct {
	keys   [][]byte      // the first one signs; all verify
	maxAge time.Duration // how old a value may be
}

const (
	valueVersion = "v1"

	// maxToken is the longest token that is sent. What is longer is replaced by one
	// that asks for everything.
	maxToken = 512
	// maxValue is the longest value that is looked at: a version, two numbers of at
	// most 13 and 43 characters, dots, and a token.
	maxValue = maxToken + 64

	// clockSlack is by how much the clocks of two processes may differ. A value is
	// honoured for that long after its age is up: that costs freshness nothing, and
	// browsers count for themselves.
	clockSlack = 5 * time.Minute
)

var (
	errMalformed = errors.New("httpsticky: it is malformed")
	errVersion   = errors.New("httpsticky: it is of an unknown version")
	errOversized = errors.New("httpsticky: it is too long")
	errForged    = errors.New("httpsticky: it is signed with none of the keys")
	errExpired   = errors.New("httpsticky: its age is up")
)

var macEncoding = base64.RawURLEncoding.Strict()

// sign returns the value for a token. The carrier is part of what is signed: what
// was made for a header is no cookie.
func (s *signer) sign(carrier, token string, now time.Time) string {
	issued := strconv.FormatInt(now.Unix(), 36)
	mac := macOf(s.keys[0], carrier, issued, token)
	return valueVersion + "." + issued + "." + token + "." + macEncoding.EncodeToString(mac[:])
}

// verify returns the token of a value. It does one HMAC for each key at most.
func (s *signer) verify(carrier, value string, now time.Time) (string, error) {
	if len(value) > maxValue {
		return "", errOversized
	}
	version, rest, _ := strings.Cut(value, ".")
	if version != valueVersion {
		return "", errVersion
	}
	issued, rest, _ := strings.Cut(rest, ".")
	token, text, _ := strings.Cut(rest, ".")
	mac, err := macEncoding.DecodeString(text)
	if err != nil || len(mac) != sha256.Size || token == "" || len(text) != macEncoding.EncodedLen(sha256.Size) {
		return "", errMalformed
	}
	at, err := strconv.ParseInt(issued, 36, 64)
	// What was made in the future was made by a clock that is ahead of ours: now.
	over := err == nil && now.Unix()-at > int64((s.maxAge+clockSlack)/time.Second)
	switch {
	case s.signed(mac, carrier, issued, token):
	case over && carrier == headerCarrier:
		// Clients keep a header's value for good, longer than anybody keeps the key. Who
		// makes one up that is ignored might as well send none.
		return "", errExpired
	default:
		return "", errForged
	}
	switch {
	case err != nil:
		return "", errMalformed
	case over:
		return "", errExpired
	}
	return token, nil
}

func (s *signer) signed(mac []byte, carrier, issued, token string) bool {
	for _, key := range s.keys {
		want := macOf(key, carrier, issued, token)
		if hmac.Equal(mac, want[:]) {
			return true
		}
	}
	return false
}

// macOf separates its parts by a byte that none of them holds.
func macOf(key []byte, carrier, issued, token string) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{"httpsticky", valueVersion, carrier, issued, token} {
		_, _ = io.WriteString(h, part)
		_, _ = h.Write([]byte{0})
	}
	h.Sum(sum[:0])
	return sum
}
