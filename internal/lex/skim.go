package lex

// Skim goes over tokens that mean little by themselves, keeping trail, and returns
// the first that the reader has to look at, as Next does: a keyword that stops, a
// parenthesis that may be a call's, anything with a keyword in a qualified name,
// whatever is rare. It is Next and the reader's bookkeeping in one loop, for speed; a
// reader that takes each token from Next has to arrive at the same trail.
//
// Nearly all of a statement is read here, so that the loop is written for the
// processor, which takes a fixed time for each jump and little for what lies between:
// bytes are taken several to a turn, blanks and dots along with the name before them,
// and each case ends in a jump back of its own. But for its last mark the trail is
// kept in memory, and nothing is called on the usual ways, for want of registers.
func (l *Lexer) Skim(trail *Trail) Kind {
	// i is unsigned so that one comparison tells that it is within src.
	src, i, bytes := l.src, uint(l.pos), l.bytes
	prev := trail.Prev
tokens:
	for i < uint(len(src)) {
		c := src[i]
		begins := bytes[c] & skimAction
		if begins == skimBlank {
			i++
			continue
		}
		switch begins {
		case skimWord:
			end := bytes.skip(src, i+1, endsWord)
			n, behind := end-i, byte(0)
			if end < uint(len(src)) {
				behind = src[end]
			}
			if behind >= 0x80 || n == 1 && (behind == '\'' || behind == '&') || len(src) < 8 {
				goto next
			}
			key := wordKey(src, i, n)
			mark, word := MarkWord, among(slots[slot(key)], key)
			if word != NoKeyword || mayBePg(src, i, n) {
				if n > 8 {
					trail.Prev = prev
					if l.word(trail, i, end) {
						return Word
					}
					prev, i = trail.Prev, end
					continue
				}
				mark = Mark(word)
				if trail.Uses[mark]&Stops != 0 {
					l.pos, l.Start, l.End, l.Kw, l.Dotted = int(end), int(i), int(end), word, false
					trail.Prev = prev
					return Word
				}
			}
			trail.Lead, trail.Kw, trail.Chained, trail.Start, trail.End = prev, word, false, int(i), int(end)
			prev, i = mark, end
			if behind == ' ' {
				i++
				continue
			}
			if word != NoKeyword || behind != '.' {
				continue
			}
		case skimName:
			end := bytes.skip(src, i+1, endsName)
			if end+1 >= uint(len(src)) || src[end] != c || src[end+1] == c || mayMeanQuoted(src[i+1:end]) {
				goto next
			}
			trail.Lead, trail.Kw, trail.Chained, trail.Start, trail.End = prev, NoKeyword, false, int(i+1), int(end)
			prev, i = l.nameMark(c), end+1
		case skimLParen:
			use, lead := trail.Uses[prev], trail.Uses[trail.Lead]
			if (use&Encloses == 0 || lead&Qualifies != 0) && (use&Names == 0 || lead&Introduces == 0) {
				l.pos, l.Start, l.End, l.Dotted = int(i+1), int(i), int(i+1), false
				trail.Prev = prev
				return LParen
			}
			trail.Depth++
			trail.Operands = trail.Operands<<1 | 1
			trail.Lists <<= 1
			prev = MarkLParen
			i++
			continue
		case skimRParen:
			if trail.Depth <= 0 {
				goto next
			}
			trail.Depth--
			prev = MarkEnding
			if trail.Operands&1 != 0 {
				prev = MarkRParen
			}
			trail.Operands >>= 1
			trail.Lists >>= 1
			i++
			continue
		case skimComma:
			prev = MarkComma
			i++
			continue
		case skimOp:
			prev = MarkOp
			i++
			continue
		case skimMinus:
			if i+1 < uint(len(src)) && (src[i+1] == '-' || src[i+1] == '*') {
				goto next // perhaps a comment
			}
			prev = MarkOp
			i++
			continue
		case skimStar:
			if l.inExec {
				goto next
			}
			prev = MarkOp
			i++
			continue
		case skimString:
			end := bytes.skip(src, i+1, endsString)
			for end < uint(len(src)) && bytes[src[end]]&endsWord == 0 && !dateWordEnds(src, i+1, end) {
				end = bytes.skip(src, end+1, endsString)
			}
			if end+1 >= uint(len(src)) || src[end] != '\'' || src[end+1] == '\'' {
				goto next
			}
			prev, i = MarkString, end+1
			continue
		case skimDigit:
			end := bytes.skip(src, i+1, endsDigits)
			if end < uint(len(src)) && (bytes[src[end]]&endsWord == 0 || src[end] == '.' || src[end] >= 0x80) {
				goto next
			}
			prev, i = MarkNumber, end
			continue
		case skimDollar:
			n, end := 0, i+1
			for end < uint(len(src)) && isDigit(src[end]) && end-i < 6 {
				n = n*10 + int(src[end]-'0')
				end++
			}
			if end-i < 2 || end-i == 6 {
				goto next
			}
			l.Dollar = max(l.Dollar, n)
			prev, i = MarkParam, end
			continue
		case skimQuestion:
			l.Marks++
			prev = MarkOf(l.question)
			i++
			continue
		default:
			goto next
		}
		// A name that is no keyword: what is joined to it by dots belongs to it.
		for i+1 < uint(len(src)) && src[i] == '.' {
			part := i + 1
			c := src[part]
			switch bytes[c] & skimAction {
			case skimWord:
				end := bytes.skip(src, part+1, endsWord)
				n := end - part
				if end < uint(len(src)) && (src[end] >= 0x80 || n == 1 && (src[end] == '\'' || src[end] == '&')) {
					goto next
				}
				if len(src) < 8 {
					goto next
				}
				key := wordKey(src, part, n)
				if among(slots[slot(key)], key) != NoKeyword || mayBePg(src, part, n) {
					goto next
				}
				trail.Chained, trail.Qual, trail.Start, trail.End = true, NoKeyword, int(part), int(end)
				prev, i = MarkWord, end
			case skimName:
				end := bytes.skip(src, part+1, endsName)
				if end+1 >= uint(len(src)) || src[end] != c || src[end+1] == c || mayMeanQuoted(src[part+1:end]) {
					goto next
				}
				trail.Chained, trail.Qual, trail.Start, trail.End = true, NoKeyword, int(part+1), int(end)
				prev, i = l.nameMark(c), end+1
			case skimStar:
				if l.inExec {
					goto next
				}
				prev, i = MarkOp, part+1
				continue tokens
			default:
				goto next
			}
		}
		if i < uint(len(src)) && src[i] == ' ' {
			i++
		}
	}
	trail.Prev, l.Dotted = prev, false
	return l.eof()
next:
	trail.Prev = prev
	l.pos = int(i)
	return l.Next()
}

// nameMark returns the mark of a name in the quotes q, and notes where these are not
// quotes in all dialects.
func (l *Lexer) nameMark(q byte) Mark {
	if q == '"' {
		return MarkOf(l.double)
	}
	if l.Notes&Divergent == 0 {
		l.Notes |= Divergent // once: a store for each name is felt
	}
	return MarkName
}

// word takes the word from start to i for Skim, in the cases that are less common. It
// reports whether the reader has to look at it.
func (l *Lexer) word(trail *Trail, start, i uint) bool {
	word, mark := keyword(l.src, start, i), MarkWord
	if word != NoKeyword {
		mark = Mark(word)
		if trail.Uses[mark]&Stops != 0 {
			l.pos, l.Start, l.End, l.Kw, l.Dotted = int(i), int(start), int(i), word, false
			return true
		}
	}
	trail.Name(mark, word, int(start), int(i))
	return false
}
