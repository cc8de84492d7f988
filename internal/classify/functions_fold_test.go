package classify

import (
	"strings"
	"testing"
)

// lowerASCII is what the words of functions_fold.go have to agree with.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}

// TestFoldEveryByteAtEveryPlace puts each byte at each place of small names of
// each length, and compares with each name that differs in that place only by
// a bit, or is the same in small letters.
func TestFoldEveryByteAtEveryPlace(t *testing.T) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz_0123456789"
	for n := 1; n <= 26; n++ {
		for at := range n {
			for c := range 256 {
				name := alphabet[:at] + string([]byte{byte(c)}) + alphabet[at+1:n]
				lower := lowerASCII(name)
				if !equalFold(lower, name) {
					t.Fatalf("%q is not equal to %q", name, lower)
				}
				if hashFold(lower) != hashFold(name) {
					t.Fatalf("%q hashes unlike %q", name, lower)
				}
				for bit := range 8 {
					other := alphabet[:at] + string([]byte{byte(c) ^ 1<<bit}) + alphabet[at+1:n]
					if lowerASCII(other) != other {
						continue // equalFold wants it in small letters
					}
					if got, want := equalFold(other, name), other == lower; got != want {
						t.Fatalf("equalFold(%q, %q) is %v", other, name, got)
					}
				}
			}
		}
	}
}

func TestFoldLengths(t *testing.T) {
	for n := range 80 {
		a := strings.Repeat("a", n)
		if !equalFold(a, strings.ToUpper(a)) {
			t.Errorf("length %d: not equal in capitals", n)
		}
		if equalFold(a, a+"a") || equalFold(a, a+"\x00") || equalFold(a+"\x00", a) {
			t.Errorf("length %d: equal to a longer or shorter name", n)
		}
		if n > maxFuncName && hashFold(a) != 0 {
			t.Errorf("length %d: hashed", n)
		}
	}
}
