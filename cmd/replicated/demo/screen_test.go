package demo

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// liveScreen is a screen of a terminal of the usual width.
func liveScreen(w *bytes.Buffer) *screen {
	return &screen{w: w, live: true, colour: true, glyphs: liveGlyphs, fd: -1}
}

var sequence = regexp.MustCompile(`^\x1b\[(\??[0-9;]*)([A-Za-z])`)

// terminal shows what a terminal would that got the output, as lines without
// styles. It knows the sequences that a screen sends, and no others.
func terminal(t *testing.T, output string) []string {
	t.Helper()
	lines := []string{""}
	row, column := 0, 0
	for len(output) > 0 {
		if m := sequence.FindStringSubmatch(output); m != nil {
			output = output[len(m[0]):]
			switch m[2] {
			case "A":
				n, err := strconv.Atoi(m[1])
				if err != nil || n > row {
					t.Fatalf("cursor up by %q from line %d", m[1], row)
				}
				row -= n
			case "K":
				lines[row] = string([]rune(lines[row])[:column])
			case "J":
				lines[row] = string([]rune(lines[row])[:column])
				lines = lines[:row+1]
			case "m", "h", "l":
			default:
				t.Fatalf("unknown sequence %q", m[0])
			}
			continue
		}
		r := []rune(output)[0]
		output = output[len(string(r)):]
		switch r {
		case '\n':
			row, column = row+1, 0
			if row == len(lines) {
				lines = append(lines, "")
			}
		case '\r':
			column = 0
		default:
			line := []rune(lines[row])
			if column < len(line) {
				line[column] = r
			} else {
				line = append(line, r)
			}
			lines[row] = string(line)
			column++
		}
	}
	return lines
}

func TestRegionShowsItsLastStateAlone(t *testing.T) {
	var out bytes.Buffer
	s := liveScreen(&out)
	s.line("above")
	r := s.region()
	var want []string
	for range 50 {
		want = nil
		for range rand.IntN(5) {
			want = append(want, strings.Repeat(string(rune('a'+rand.IntN(26))), rand.IntN(100)))
		}
		r.draw(want...)
	}
	r.end(want...)
	s.line("below")

	shown := []string{"above"}
	for _, l := range want {
		shown = append(shown, clip(l, screenWidth, "…"))
	}
	shown = append(shown, "below", "")
	if got := terminal(t, out.String()); !slices.Equal(got, shown) {
		t.Errorf("the terminal shows\n%q\nwant\n%q", got, shown)
	}
}

func TestRegionOverwritesBeforeItErases(t *testing.T) {
	var out bytes.Buffer
	r := liveScreen(&out).region()
	r.draw("one", "two")
	out.Reset()
	r.draw("three", "four")
	// An erased line that waits for its text is seen as flicker.
	if got, want := out.String(), "\x1b[2A\rthree\x1b[K\nfour\x1b[K\n"; got != want {
		t.Errorf("redrawing sends %q, want %q", got, want)
	}
}

func TestCursorIsHiddenWhileARegionLivesAndShownAfter(t *testing.T) {
	const hide, show = "\x1b[?25l", "\x1b[?25h"
	var out bytes.Buffer
	s := liveScreen(&out)
	r := s.region()
	r.draw("a")
	r.draw("b")
	if got := out.String(); strings.Count(got, hide) != 1 || strings.Contains(got, show) {
		t.Errorf("while drawing: %q", got)
	}
	s.close() // as after an interrupt
	if got := out.String(); !strings.HasSuffix(got, show) {
		t.Errorf("after close: %q", got)
	}
}

func TestPlainScreenHasNoControlSequences(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, false) // a buffer is no terminal
	s.title("name", "what")
	s.chapter(1, "A chapter")
	s.code("x := 1")
	s.dim("dim …")
	r := s.region()
	r.draw("not shown")
	r.end(s.bar(1, 2, 4, red)+"|"+s.sparkline([]int{0, 1, 4}, 4, 4, cyan)+"|", s.paint(bold, "end"))
	s.close()
	for i, b := range out.Bytes() {
		if b != '\n' && (b < ' ' || b > '~') {
			t.Fatalf("byte %#x at %d of %q", b, i, out.String())
		}
	}
	if got := out.String(); strings.Contains(got, "not shown") || !strings.Contains(got, "##..| :@ |\nend\n") {
		t.Errorf("the screen shows %q", got)
	}
}

func TestPaintWithoutColour(t *testing.T) {
	s := liveScreen(new(bytes.Buffer))
	s.colour = false // NO_COLOR
	if got := s.paint(red, "text"); got != "text" {
		t.Errorf("paint gives %q", got)
	}
}

func TestClipCountsColumnsAndKeepsStyles(t *testing.T) {
	tests := []struct {
		text    string
		columns int
		more    string
		want    string
	}{
		{text: "abc", columns: 3, more: "…", want: "abc"},
		{text: "abcd", columns: 3, more: "…", want: "ab…"},
		{text: "abcdef", columns: 5, more: "...", want: "ab..."},
		{text: "▁▂▃▄", columns: 3, more: "…", want: "▁▂…"},
		{text: "\x1b[31mabcd\x1b[0m", columns: 3, more: "…", want: "\x1b[31mab…\x1b[0m"},
		{text: "abc", columns: 0, more: "", want: ""},
	}
	for _, tt := range tests {
		got := clip(tt.text, tt.columns, tt.more)
		if got != tt.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tt.text, tt.columns, got, tt.want)
		}
		if width(got) > tt.columns {
			t.Errorf("clip(%q, %d) is %d columns wide", tt.text, tt.columns, width(got))
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap("a connection was refused by somebody", 12)
	if want := []string{"a connection", "was refused", "by somebody"}; !slices.Equal(got, want) {
		t.Errorf("wrap gives %q, want %q", got, want)
	}
	if got := wrap("", 12); got != nil {
		t.Errorf("wrap of nothing gives %q", got)
	}
}

func TestFigures(t *testing.T) {
	s := newScreen(new(bytes.Buffer), true)
	tests := []struct{ name, got, want string }{
		{"thousands", count(1234567), "1,234,567"},
		{"a negative number", count(-1234), "-1,234"},
		{"three digits", count(999), "999"},
		{"a part", outOf(3, 1024), "3 of 1,024"},
		{"an empty whole", s.bar(0, 0, 4, red), "...."},
		{"nothing", s.bar(0, 9, 4, red), "...."},
		{"next to nothing is not nothing", s.bar(1, 1000, 4, red), "#..."},
		{"all", s.bar(9, 9, 4, red), "####"},
		{"a line shows the newest", s.sparkline([]int{8, 8, 0, 1, 8}, 3, 8, cyan), " .@"},
		{"a short line is padded", s.sparkline([]int{8}, 3, 8, cyan), "@  "},
		{"a line of nothing", s.sparkline([]int{0, 0}, 2, 0, cyan), "  "},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestPromisesDecideTheError(t *testing.T) {
	var p promises
	if p.err() == nil {
		t.Error("no promise: no error")
	}
	p.add("one", true, "")
	p.skip("two", "no time")
	if err := p.err(); err != nil {
		t.Errorf("one held, one was left out: %v", err)
	}
	p.because("three", false, "", errors.New("cause"))
	if err := p.err(); err == nil || err.Error() != "1 of 3 promises did not hold" {
		t.Errorf("one was broken: %v", err)
	}
}

func TestSummaryShowsEveryPromise(t *testing.T) {
	var out bytes.Buffer
	d := &demo{screen: newScreen(&out, true)}
	d.promises.add("held one", true, "7 of 7")
	d.promises.because("broken one", false, "6 of 7", errors.New("the cause"))
	d.promises.skip("left out", "no time")
	d.summary(true)
	for _, want := range []string{"ok   held one", "FAIL broken one", "-    left out", "the cause", "1 of 3 promises did not hold."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestSummaryOfAnEndBeforeItsTime(t *testing.T) {
	var out bytes.Buffer
	d := &demo{screen: newScreen(&out, true)}
	d.promises.add("held one", true, "7 of 7")
	d.summary(false)
	if got := out.String(); !strings.Contains(got, "did not come to its end") || strings.Contains(got, "promises held") {
		t.Errorf("the summary says\n%s", got)
	}
}

func ExampleMain_usage() {
	var out bytes.Buffer
	fmt.Println(Main([]string{"-engine", "oracle"}, &out, &out))
	fmt.Print(out.String())
	// Output:
	// 2
	// replicated demo: -engine "oracle": it is one of postgres, mariadb, sqlite
}
