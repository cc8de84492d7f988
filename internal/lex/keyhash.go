package lex

// The keyword table is an open hash over the first eight bytes of a word, folded
// to one case and read as one number. One multiplication and, for nearly all
// words, one comparison tell whether a word is a keyword.
//
// Folding sets bit 5 of each byte. That maps no two word bytes to one but letters
// of different case ('_' becomes 0x7f, which is no word byte), so that equal
// numbers mean equal words.

const (
	hashBits = 11
	hashSize = 1 << hashBits
	hashMul  = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	fold8    = 0x2020202020202020

	minKeyword = 2
)

// lengthsByFirst and lengthsByLast have, for each byte, the set of lengths of the
// keywords that begin or end with it: bit n is length n. They spare half of all
// names the rest. They do not hold for the keywords that are known by their
// beginning, all of which begin with p.
var lengthsByFirst, lengthsByLast [256]uint32

// hashIndex holds keywords, and keys the number of each. Most words that are no
// keywords meet an empty slot of the small hashIndex, and nothing else is read.
var (
	hashIndex [hashSize]Keyword
	hashKeys  [NumKeywords]uint64
)

func init() {
	for k := NoKeyword + 1; k < NumKeywords; k++ {
		name := keywordNames[k]
		for _, low := range []byte{0, 0x20} {
			lengthsByFirst[name[0]|low] |= 1 << len(name)
			lengthsByLast[name[len(name)-1]|low] |= 1 << len(name)
		}
		hashKeys[k] = lastKey(name)
		h := hashKeys[k] * hashMul >> (64 - hashBits)
		for hashIndex[h] != NoKeyword {
			h = (h + 1) % hashSize
		}
		hashIndex[h] = k
	}
}

// mayBeKeyword reports whether a word of n bytes with the given first and last
// byte may be a keyword.
func mayBeKeyword(first, last byte, n int) bool {
	return lengthsByFirst[first]&lengthsByLast[last]>>(uint(n)&31)&1 != 0 && n < 32 || first|0x20 == 'p'
}

// load8 returns the eight bytes of src at i. The compiler makes it one load.
func load8(src string, i int) uint64 {
	s := src[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// lastKey returns up to eight bytes of word, folded, for a word at the end of the
// text, where eight bytes cannot be read at once.
func lastKey(word string) uint64 {
	var w uint64
	for i := min(len(word), 8) - 1; i >= 0; i-- {
		w = w<<8 | uint64(word[i]|0x20)
	}
	return w
}

// keyword returns the keyword src[start:end], in any case, or NoKeyword.
func keyword(src string, start, end int) Keyword {
	n := end - start
	if n < minKeyword {
		return NoKeyword
	}
	var key uint64
	if start+8 <= len(src) {
		key = load8(src, start) | fold8
		if n < 8 {
			key &= 1<<(uint(n)*8&63) - 1
		}
	} else {
		key = lastKey(src[start:end])
	}
	h := key * hashMul >> (64 - hashBits)
	k := hashIndex[h]
	if k == NoKeyword {
		return NoKeyword
	}
	if n < 8 && hashKeys[k] == key {
		return k // the bytes behind the word are zero in both
	}
	return probe(src[start:end], key, h)
}

// probe looks for a word from slot h on.
func probe(word string, key, h uint64) Keyword {
	for ; ; h++ {
		k := hashIndex[h%hashSize]
		if k == NoKeyword {
			return NoKeyword
		}
		if hashKeys[k] != key {
			continue
		}
		name := keywordNames[k]
		if len(word) == len(name) && (len(word) <= 8 || equalFold(word[8:], name[8:])) {
			return k
		}
		if k >= KwPgStat && len(word) > 8 && prefixed(k, word) {
			return k
		}
	}
}

// LookupKeyword returns the keyword that word is, in any case, or NoKeyword.
func LookupKeyword(word string) Keyword { return keyword(word, 0, len(word)) }

// prefixed tells the words that are keywords by their beginning: the first eight
// bytes are known to match.
func prefixed(k Keyword, word string) bool {
	if k == KwPgTempN {
		for i := 8; i < len(word); i++ {
			if !isDigit(word[i]) {
				return false
			}
		}
		return true
	}
	name := keywordNames[k]
	return len(word) > len(name) && equalFold(word[8:len(name)], name[8:])
}

// equalFold compares a with b, which is in upper case and of the same length.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		if a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}
