package graphql

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"
)

// The functions of this file walk over JSON text without building values of it:
// what is looked for are a few strings beside variables of any size, and a map would
// hide the keys that are there twice. They take text that wellFormed has accepted.

var utf8BOM = []byte("\xef\xbb\xbf")

// wellFormed returns text without leading space and byte order mark, which
// RFC 8259 section 8.1 allows parsers to ignore, and whether it is one JSON value
// in UTF-8. Nesting is bounded by encoding/json (10,000 levels).
func wellFormed(text []byte) ([]byte, bool) {
	text = space(bytes.TrimPrefix(text, utf8BOM))
	return text, utf8.Valid(text) && json.Valid(text)
}

// space skips space.
func space(text []byte) []byte {
	for i, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return text[i:]
		}
	}
	return nil
}

// members returns the keys of an object, decoded, and their values, as text.
func members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for rest := space(object[1:]); rest[0] != '}'; {
			quoted := rest[:valueLen(rest)]
			key, _ := str(quoted)
			rest = space(rest[len(quoted):])
			rest = space(rest[1:]) // the colon
			value := rest[:valueLen(rest)]
			if !yield(key, value) {
				return
			}
			rest = next(rest[len(value):])
		}
	}
}

// elements returns the values of an array, as text.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := space(array[1:]); rest[0] != ']'; {
			value := rest[:valueLen(rest)]
			if !yield(value) {
				return
			}
			rest = next(rest[len(value):])
		}
	}
}

// next skips the comma between two members or elements, if there is one.
func next(rest []byte) []byte {
	rest = space(rest)
	if rest[0] == ',' {
		rest = space(rest[1:])
	}
	return rest
}

// valueLen returns the length of the value that text begins with.
func valueLen(text []byte) int {
	switch text[0] {
	case '"':
		return stringLen(text)
	case '{', '[':
		depth := 0
		for i := 0; ; {
			switch text[i] {
			case '"':
				i += stringLen(text[i:])
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	}
	// A number, true, false, null: up to what cannot be part of one.
	for i, c := range text {
		switch c {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return len(text)
}

func stringLen(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// str decodes a string. It returns "" and true for null, "" and false for every
// other value.
func str(value []byte) (string, bool) {
	if value[0] != '"' {
		return "", value[0] == 'n'
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1]), true
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, err == nil
}

// keys tells which of a few known keys have been met.
type keys struct {
	known []string
	met   uint
}

// take returns key if it is a known one. It is not ok if it was there before, or
// differs from a known one in letter case: encoding/json takes it for the same
// (the last one wins), other parsers do not.
func (k *keys) take(key string) (known string, ok bool) {
	for i, name := range k.known {
		// Letters that fold to ASCII ones have two bytes (U+017F) or three (U+212A).
		if len(key) < len(name) || len(key) > 3*len(name) || !strings.EqualFold(key, name) {
			continue
		}
		if key != name || k.met&(1<<i) != 0 {
			return "", false
		}
		k.met |= 1 << i
		return name, true
	}
	return "", true
}
