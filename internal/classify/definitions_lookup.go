package classify

import "strings"

// ClassifyWith is Classify for a database of whose own names n tells; n may be nil.
// It is as pure, in n too. A text without names that only n knows costs as much
// as it does Classify, unless the database has views, operators or relations that
// a read must not touch unseen: then the text is searched for their names.
func ClassifyWith(d Dialect, text string, n *Definitions) (v Verdict) {
	if int(d) >= len(modes) {
		d = Generic
	}
	m := &modes[d]
	var w walker
	w.names = n
	w.open(d, text, m.first)
	w.text(&v)
	open := openNotes
	if d == Generic {
		open |= openGeneric
	}
	if w.lx.Notes&open != 0 {
		v = classifyOthers(d, text, m, v, &w)
	}
	if n != nil && n.scans && v.Class != Empty {
		n.touch(&v, text)
	}
	return v
}

// touch makes of v what the relations and operators that the text touches make of
// it.
func (n *Definitions) touch(v *Verdict, text string) {
	f := n.scan(text)
	if f == 0 {
		return
	}
	r := query(f)
	if !v.Replica() {
		v.Effect |= r.effect & Stamps
		return
	}
	v.Class, v.Effect, v.Reason = r.class, r.effect, r.reason
}

// scan returns what the names in the text say. It takes names for what they are
// wherever they stand, in literals and comments too.
func (n *Definitions) scan(text string) fact {
	f := n.always
	for _, s := range n.symbols {
		if strings.Contains(text, s) {
			f |= factOperator
		}
	}
	if len(n.words) == 0 {
		return f
	}
	for i := 0; i < len(text); {
		c := text[i]
		if wordBytes[c] == 0 {
			i++
			continue
		}
		end, bytes := i+1, wordBytes[c]
		for end < len(text) && wordBytes[text[end]] != 0 {
			bytes |= wordBytes[text[end]]
			end++
		}
		switch word := text[i:end]; {
		case bytes&wideByte != 0:
			// Servers fold such letters, too, some of them to ASCII ones.
			f |= n.words[strings.ToLower(word)]
		case n.lengths[lowerByte(c)]&lengthBit(end-i) != 0:
			if !n.my && len(word) > maxFuncName {
				word = word[:maxFuncName] // as PostgreSQL does
			}
			var buf [maxFuncName + 1]byte
			if len(word) <= len(buf) {
				f |= n.words[string(appendFold(buf[:0], word))]
			}
		}
		i = end
	}
	return f
}

// kind corrects what the tables say of a call: name is the function's, plain or
// the last part of a name whose part before is schema. Where that cannot be read
// plainly, schema is "" though the name is qualified.
func (n *Definitions) kind(kind funcKind, schema, name string, qualified bool) funcKind {
	if kind > fnHarmless || kind == fnHarmless && !n.shadows || qualified && schema == "" {
		return kind
	}
	f := n.find(schema, name)
	switch {
	case f == nameWrites:
		return fnWrite
	case kind == fnHarmless && n.my:
		return kind // the native goes before a stored function
	case f == nameHarmless:
		return fnHarmless
	case f == nameUnproven:
		return fnUnknown
	}
	return kind
}

func (n *Definitions) find(schema, name string) nameFact {
	var buf [2*(maxFuncName+1) + 1]byte
	if len(schema)+len(name) > 2*maxFuncName || !plainPart(name) {
		return 0
	}
	if schema == "" {
		return n.funcs[string(appendFold(buf[:0], name))]
	}
	key := append(appendFold(buf[:0], schema), '.')
	if f := n.funcs[string(appendFold(key, name))]; f != 0 {
		return f
	}
	key = append(buf[:0], '*', '.')
	return n.funcs[string(appendFold(key, name))]
}

// qualifier returns the part before the last of the qualified name that s is
// behind, "" if it is not written plainly and close by: the caller then knows
// nothing of the function.
func (w *walker) qualifier(s *bodyState) string {
	text := w.lx.Slice(0, s.Start)
	end := len(text)
	if quoteAt(text, end-1) {
		end--
	}
	if end < 2 || text[end-1] != '.' {
		return ""
	}
	end--
	from := end
	if quoteAt(text, end-1) {
		end--
		from = strings.LastIndexByte(text[:end], text[end]) + 1
		if from == 0 || quoteAt(text, from-2) {
			return ""
		}
	} else {
		for from > 0 && wordBytes[text[from-1]] != 0 {
			from--
		}
	}
	part := text[from:end]
	if !plainPart(part) {
		return ""
	}
	return part
}

func quoteAt(text string, i int) bool { return i >= 0 && (text[i] == '"' || text[i] == '`') }

// wideByte is a byte of a name that is not ASCII.
const wideByte = 2

// wordBytes has 1 for ASCII letters, digits, _ and $, wideByte for what is not
// ASCII, and 0 for what stands in no name.
var wordBytes = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= 0x80:
			t[c] = wideByte
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '$':
			t[c] = 1
		}
	}
	return t
}()

// wordEnd returns the end of the word that begins at i; i if there is none.
func wordEnd(s string, i int) int {
	for i < len(s) && wordBytes[s[i]] != 0 {
		i++
	}
	return i
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lengthBit is the bit for words of a length; long ones share one.
func lengthBit(n int) uint64 { return 1 << min(n, maxFuncName) }

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func appendFold(to []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		to = append(to, lowerByte(s[i]))
	}
	return to
}

// foldName is how names are kept: in small letters.
func foldName(s string) string { return strings.ToLower(s) }
