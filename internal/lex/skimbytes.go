package lex

// What a byte means to Skim. The low bits tell what begins with the byte, the others
// where it may stand, so that one table answers all that Skim asks of a byte.
const (
	skimOther uint8 = iota // left to Next
	skimBlank
	skimWord
	skimDigit
	skimLParen
	skimRParen
	skimComma
	skimOp
	skimMinus // or a slash
	skimStar
	skimString
	skimName
	skimDollar
	skimQuestion

	skimAction uint8 = 0x0f

	endsWord   uint8 = 0x10 // goes on no word
	endsDigits uint8 = 0x20 // is no digit
	endsName   uint8 = 0x40 // to be looked at in a quoted name
	endsString uint8 = 0x80 // to be looked at in a string
)

// skimTable has all bytes as they are in one of the lexers.
type skimTable [256]uint8

var skimPostgres, skimMySQL = buildSkim(false), buildSkim(true)

func buildSkim(mysql bool) (t skimTable) {
	begins := map[uint8]uint8{
		clsSpace: skimBlank, clsLetter: skimWord, clsDigit: skimDigit,
		clsLParen: skimLParen, clsRParen: skimRParen, clsComma: skimComma, clsOp: skimOp,
		clsDash: skimMinus, clsSlash: skimMinus, clsStar: skimStar, clsSingle: skimString, clsDouble: skimName, clsQuestion: skimQuestion,
	}
	dates := special | dateEnds
	if mysql {
		begins[clsBacktick] = skimName
		dates = special
	} else {
		begins[clsDollar] = skimDollar
	}
	for c := range t {
		t[c] = begins[class[c]]
		if !isWordByte(byte(c)) {
			t[c] |= endsWord
		}
		if !isDigit(byte(c)) {
			t[c] |= endsDigits
		}
		if inQuotes[c]&special != 0 {
			t[c] |= endsName
		}
		if inQuotes[c]&dates != 0 {
			t[c] |= endsString
		}
	}
	return t
}

// skip returns the place of the first byte from i on that has one of the flags, or the
// end. Three bytes to a turn are as many as the compiler still inlines.
func (t *skimTable) skip(src string, i uint, until uint8) uint {
	for i < uint(len(src)) && t[src[i]]&until == 0 {
		if i++; i >= uint(len(src)) || t[src[i]]&until != 0 {
			break
		}
		if i++; i >= uint(len(src)) || t[src[i]]&until != 0 {
			break
		}
		i++
	}
	return i
}
