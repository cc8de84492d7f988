package scenarios

import (
	"fmt"
	"regexp"
	"strings"
)

// form is a kind of command. In its pattern <node>, <duration>, <count> and <word>
// are open places for one word each; <settings> and <expectation>, which stand
// last, take the rest of the line.
type form struct {
	pattern string
	run     func(w *world, a args) error
	phase   bool // ends a phase of the load, however short it was
}

var nodeName = regexp.MustCompile(`^(primary|former|(replica|node)[1-9][0-9]?)$`)

// forms returns all commands. (A function, since the commands' own code asks for
// forms.)
func forms() []form {
	var all []form
	for _, list := range [][]form{basicForms, replicaForms, networkForms, primaryForms, untilForms, expectForms} {
		all = append(all, list...)
	}
	return all
}

// match finds the form of a command and reads what stands in its open places.
func match(words []string) (*form, args, error) {
	var near []string
	var why error
	for _, f := range forms() {
		pattern := strings.Fields(f.pattern)
		if pattern[0] != words[0] {
			continue
		}
		a, literals, err := fill(pattern, words)
		if err == nil {
			return &f, a, nil
		}
		near = append(near, f.pattern)
		if literals { // only what stands in an open place is wrong
			why = err
		}
	}
	switch {
	case why != nil:
		return nil, args{}, why
	case near == nil:
		return nil, args{}, fmt.Errorf("there is no command %q", words[0])
	default:
		return nil, args{}, fmt.Errorf(`%q is not of the form "%s"`, strings.Join(words, " "), strings.Join(near, `" or "`))
	}
}

// fill reads the words by a pattern. literals tells that those of the pattern's
// words that are not open places are all there.
func fill(pattern, words []string) (a args, literals bool, err error) {
	rest := words
	for i, p := range pattern {
		switch p {
		case "<settings>":
			a.settings, err = settingsOf(rest)
			return a, true, err
		case "<expectation>":
			a.expected, err = expectationOf(rest)
			return a, true, err
		}
		if len(rest) == 0 {
			return a, false, fmt.Errorf("%s is missing", strings.Join(pattern[i:], " "))
		}
		word := rest[0]
		rest = rest[1:]
		var e error
		switch p {
		case "<node>":
			if !nodeName.MatchString(word) {
				e = fmt.Errorf("%q is not a node: primary, former, replica1, …, node1, …", word)
			}
			a.nodes = append(a.nodes, word)
		case "<duration>":
			d, bad := durationOf(word)
			a.durations, e = append(a.durations, d), bad
		case "<count>":
			n, bad := countOf([]string{word})
			a.counts, e = append(a.counts, n), bad
		case "<word>":
			a.words = append(a.words, word)
		default:
			if word != p {
				return a, false, fmt.Errorf("%q in place of %q", word, p)
			}
		}
		if err == nil {
			err = e
		}
	}
	if len(rest) > 0 {
		return a, false, fmt.Errorf("%q is too much", strings.Join(rest, " "))
	}
	return a, true, err
}
