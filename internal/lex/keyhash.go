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
	hashMul  = 0x9e3779b97f4a7c15
	fold8    = 0x2020202020202020

	minKeyword = 2
)

type hashEntry struct {
	key  uint64
	kw   Keyword
	size uint8
}

var hashTable, maxKeyword = buildHash()

func buildHash() (t [hashSize]hashEntry, longest int) {
	for k := NoKeyword + 1; k < NumKeywords; k++ {
		name := keywordNames[k]
		longest = max(longest, len(name))
		key := wordKey(name, 0, len(name))
		h := key * hashMul >> (64 - hashBits)
		for t[h].key != 0 {
			h = (h + 1) % hashSize
		}
		t[h] = hashEntry{key: key, kw: k, size: uint8(len(name))}
	}
	return t, longest
}

// wordKey returns up to eight bytes of src[start:end], folded.
func wordKey(src string, start, end int) uint64 {
	n := end - start
	if start+8 <= len(src) {
		s := src[start : start+8]
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		w |= fold8
		if n < 8 {
			w &= 1<<(uint(n)*8&63) - 1
		}
		return w
	}
	var w uint64
	for i := min(n, 8) - 1; i >= 0; i-- {
		w = w<<8 | uint64(src[start+i]|0x20)
	}
	return w
}

// keyword returns the keyword src[start:end], in any case, or NoKeyword.
func keyword(src string, start, end int) Keyword {
	n := end - start
	if n < minKeyword {
		return NoKeyword
	}
	key := wordKey(src, start, end)
	h := key * hashMul >> (64 - hashBits)
	for {
		e := &hashTable[h%hashSize]
		if e.key == key {
			if int(e.size) == n && (n <= 8 || equalFold(src[start+8:end], keywordNames[e.kw][8:])) {
				return e.kw
			}
			if e.kw >= KwPgStat && n > 8 && prefixed(e.kw, src[start:end]) {
				return e.kw
			}
		} else if e.key == 0 {
			return NoKeyword
		}
		h++
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
