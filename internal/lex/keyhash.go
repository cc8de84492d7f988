package lex

import "encoding/binary"

// A word is looked up in the keyword table by its key: its first eight bytes, folded to
// one case and read as one number, in which the highest bit tells whether there are
// more. The key picks one keyword, or a short chain, or, for most names, none.
//
// Folding sets bit 5 of each byte. That maps no two word bytes to one but letters
// of different case ('_' becomes 0x7f, which is no word byte), so that equal
// numbers mean equal words.

const (
	slotBits = 12
	fold8    = 0x2020202020202020
	longer   = 1 << 63 // in a key: the word has more than eight bytes
)

var (
	// slots has the first keyword of each chain, which goes on in chained.
	slots   [1 << slotBits]Keyword
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
		keys[k] = shortKey(keywordNames[k])
		s := slot(keys[k])
		chained[k], slots[s] = slots[s], k
	}
}

// slot returns where the chain of a key begins.
func slot(key uint64) uint64 {
	const mul = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	return key * mul >> (64 - slotBits)
}

// load8 returns the eight bytes of src at i, in one load.
func load8(src string, i uint) uint64 {
	return binary.LittleEndian.Uint64([]byte(src[i : i+8])) // does not copy
}

// wordKey returns the key of the word of n bytes at src[start:], if n is less than 32;
// else no word's. src has at least eight bytes.
func wordKey(src string, start, n uint) uint64 {
	at := min(start, uint(len(src))-8)
	return (load8(src, at)>>(8*(start-at)&63)|fold8)&keyMasks[n&31] | (8-uint64(n))&longer
}

// shortKey returns the key of a word by itself, which may have less than eight bytes.
func shortKey(word string) uint64 {
	var w uint64
	for i := min(len(word), 8) - 1; i >= 0; i-- {
		w = w<<8 | uint64(word[i]|0x20)
	}
	return w | (8-uint64(len(word)))&longer
}

// keyword returns the keyword src[start:end], in any case, or NoKeyword.
func keyword(src string, start, end uint) Keyword {
	n := end - start
	var key uint64
	if len(src) >= 8 {
		key = wordKey(src, start, n)
	} else {
		key = shortKey(src[start:end])
	}
	k := among(slots[slot(key)], key)
	if n <= 8 {
		return k
	}
	for ; k != NoKeyword; k = among(chained[k], key) {
		if name := keywordNames[k]; n == uint(len(name)) && equalFold(src[start+8:end], name[8:]) {
			return k
		}
	}
	if mayBePg(src, start, n) {
		return pgKeyword(src[start:end])
	}
	return NoKeyword
}

// among returns the first keyword of the chain beginning with k that has the key. If
// its word has up to eight bytes, that is the word.
func among(k Keyword, key uint64) Keyword {
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
