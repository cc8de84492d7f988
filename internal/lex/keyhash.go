package lex

import "encoding/binary"

// A word is looked up in the keyword table by its first and last byte and its length,
// which are at hand where it has been cut. They pick one keyword, or a short chain,
// or, for most names, none, and then nothing else is read. Whether the word is that
// keyword is told by its key: its first eight bytes, folded to one case and read as one
// number, in which the highest bit tells whether there are more.
//
// Folding sets bit 5 of each byte. That maps no two word bytes to one but letters
// of different case ('_' becomes 0x7f, which is no word byte), so that equal
// numbers mean equal words.

const (
	endsBits = 11
	fold8    = 0x2020202020202020
	longer   = 1 << 63 // in a key: the word has more than eight bytes

	minKeyword = 2
)

var (
	// byEnds has the first keyword of each chain, which goes on in chained.
	byEnds  [1 << endsBits]Keyword
	chained [NumKeywords]Keyword
	// keys has the key of each keyword.
	keys [NumKeywords]uint64
	// keyMasks has, for each length, the bytes of a key that belong to a word of that
	// length. No keyword is longer than it has room for.
	keyMasks [32]uint64
)

func init() {
	for n := range keyMasks {
		keyMasks[n] = 1<<(8*min(n, 8)) - 1
	}
	for k := NumKeywords - 1; k > NoKeyword; k-- {
		name := keywordNames[k]
		keys[k] = lastKey(name)
		e := ends(name[0], name[len(name)-1], uint(len(name)))
		chained[k], byEnds[e] = byEnds[e], k
	}
}

// ends returns where the chain of a word begins. Case makes no difference to it.
func ends(first, last byte, n uint) uint32 {
	const mul = 0x9e3779b1 // 2^32 divided by the golden ratio
	return (uint32(first)&0x1f | uint32(last)&0x1f<<5 | uint32(n)<<10) * mul >> (32 - endsBits)
}

// load8 returns the eight bytes of src at i, in one load.
func load8(src string, i uint) uint64 {
	return binary.LittleEndian.Uint64([]byte(src[i : i+8])) // does not copy
}

// lastKey returns the key of a word, also at the end of the text, where eight bytes
// cannot be read at once.
func lastKey(word string) uint64 {
	var w uint64
	for i := min(len(word), 8) - 1; i >= 0; i-- {
		w = w<<8 | uint64(word[i]|0x20)
	}
	return w | (8-uint64(len(word)))&longer
}

// wordKey returns the key of the word of n bytes at src[start:], if n is less than 32;
// else no word's. Eight bytes must be there to be read.
func wordKey(src string, start, n uint) uint64 {
	return (load8(src, start)|fold8)&keyMasks[n&31] | (8-uint64(n))&longer
}

// keyword returns the keyword src[start:end], in any case, or NoKeyword.
func keyword(src string, start, end uint) Keyword {
	n := end - start
	if n < minKeyword {
		return NoKeyword
	}
	var key uint64
	if start+8 <= uint(len(src)) {
		key = wordKey(src, start, n)
	} else {
		key = lastKey(src[start:end])
	}
	for k := byEnds[ends(src[start], src[end-1], n)]; k != NoKeyword; k = chained[k] {
		if name := keywordNames[k]; keys[k] == key && n == uint(len(name)) && (n <= 8 || equalFold(src[start+8:end], name[8:])) {
			return k
		}
	}
	if mayBePg(src, start, n) {
		return pgKeyword(src[start:end])
	}
	return NoKeyword
}

// among returns the first keyword of the chain beginning with k that has the key of
// the word of n bytes at src[start:]. With up to eight bytes that is the word.
// Eight bytes must be there to be read.
func among(k Keyword, src string, start, n uint) Keyword {
	key := wordKey(src, start, n)
	for k != NoKeyword && keys[k] != key {
		k = chained[k]
	}
	return k
}

// LookupKeyword returns the keyword that word is, in any case, or NoKeyword.
func LookupKeyword(word string) Keyword { return keyword(word, 0, uint(len(word))) }

// mayBePg reports whether the word of n bytes at src[start:] may be one of those that
// are keywords by their beginning.
func mayBePg(src string, start, n uint) bool {
	return n > 8 && src[start]|0x20 == 'p' && src[start+1]|0x20 == 'g'
}

// pgKeyword returns the keyword that word, of more than eight bytes, is by its
// beginning, if it is one.
func pgKeyword(word string) Keyword {
	begins := func(k Keyword) bool {
		name := keywordNames[k]
		return len(word) > len(name) && equalFold(word[:len(name)], name)
	}
	switch {
	case begins(KwPgStat):
		return KwPgStat
	case begins(KwPgStatio):
		return KwPgStatio
	case begins(KwPgTempN):
		for i := len(keywordNames[KwPgTempN]); i < len(word); i++ {
			if !isDigit(word[i]) {
				return NoKeyword
			}
		}
		return KwPgTempN
	}
	return NoKeyword
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
