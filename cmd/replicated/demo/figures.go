package demo

import (
	"math"
	"strconv"
	"strings"
)

// bar draws a share of a whole, so many columns wide.
func (s *screen) bar(part, whole, columns int, st style) string {
	n := 0
	if whole > 0 {
		n = int(math.Round(float64(part) / float64(whole) * float64(columns)))
		if part > 0 {
			n = max(n, 1) // something is never drawn as nothing
		}
	}
	return s.paint(st, strings.Repeat(s.glyphs.full, n)) + s.paint(dim, strings.Repeat(s.glyphs.empty, columns-n))
}

// sparkline draws a series, the newest so many columns of it, scaled to a top.
func (s *screen) sparkline(series []int, columns, top int, st style) string {
	series = series[max(0, len(series)-columns):]
	var b strings.Builder
	for _, v := range series {
		level := 0
		if v > 0 && top > 0 {
			level = max(1, min(v*(len(s.glyphs.levels)-1)/top, len(s.glyphs.levels)-1))
		}
		b.WriteString(s.glyphs.levels[level])
	}
	return s.paint(st, b.String()) + strings.Repeat(" ", columns-len(series))
}

// count writes a number with a comma between thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// outOf writes "3 of 1,024".
func outOf(part, whole int) string { return count(part) + " of " + count(whole) }
