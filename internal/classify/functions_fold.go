package classify

// Names are hashed and compared eight bytes at a time, straight from the text,
// because a byte at a time costs more than all the rest of a lookup. A name of
// eight bytes or more is read as words at 0, 8, 16 ... and one that ends where
// the name ends, which may overlap the word before; a shorter one is one word.

// maxFuncName is the longest name that can be a function's: PostgreSQL cuts
// names there, and no native of MySQL comes near. Longer ones are not hashed,
// so that a lookup takes bounded time.
const maxFuncName = 63

// hashFold hashes a name as if its ASCII capitals were small letters. It is 0
// for a name that is longer than maxFuncName.
func hashFold(name string) uint64 {
	n := len(name)
	if n > maxFuncName {
		return 0
	}
	h := uint64(n)
	if n < 8 {
		return mixWord(h, lowerWord(shortWord(name)))
	}
	for i := 0; i < n-8; i += 8 {
		h = mixWord(h, lowerWord(wordAt(name, i)))
	}
	return mixWord(h, lowerWord(wordAt(name, n-8)))
}

// equalFold reports whether name is lower, but for the case of ASCII letters.
// No other letters are folded: a name that has any is no built-in's, even if
// the server should fold it to one, and unknown is the safe answer.
func equalFold(lower, name string) bool {
	n := len(name)
	if n != len(lower) {
		return false
	}
	if n < 8 {
		return lowerWord(shortWord(name)) == shortWord(lower)
	}
	for i := 0; i < n-8; i += 8 {
		if lowerWord(wordAt(name, i)) != wordAt(lower, i) {
			return false
		}
	}
	return lowerWord(wordAt(name, n-8)) == wordAt(lower, n-8)
}

func mixWord(h, w uint64) uint64 {
	h = (h ^ w) * 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return h ^ h>>32
}

// lowerWord lowers the ASCII capitals among eight bytes.
func lowerWord(w uint64) uint64 {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	// The high bit of each byte says: at least 'A', respectively above 'Z'. That
	// of w says: not ASCII.
	low := w &^ highs
	fromA := low + (0x80-'A')*ones
	aboveZ := low + (0x7f-'Z')*ones
	return w | (fromA&^aboveZ&^w&highs)>>2 // 0x80 becomes 0x20
}

// wordAt is the eight bytes of s at i. The compiler makes it one load.
func wordAt(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// shortWord is the up to seven bytes of s, and zeros.
func shortWord(s string) uint64 {
	n := uint(len(s))
	switch {
	case n >= 4:
		return uint64(halfAt(s, 0)) | uint64(halfAt(s, n-4))<<(8*(n-4))
	case n > 0: // 1: the same byte three times; 2: first, last, last
		return uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1))
	}
	return 0
}

func halfAt(s string, i uint) uint32 {
	b := s[i : i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}
