package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// Script is a scenario as it was read: what to do, one command after the other.
// Make one with [Parse]. It does not change when it is run.
type Script struct {
	// Name is what the script was read from, without its directory.
	Name string
	// Engines are those that it is for, in the order of the script.
	Engines []replicatedtest.Engine
	// Options are those of the cluster that it needs.
	Options replicatedtest.Options

	commands []command
}

// command is one line of a script, or a block of them.
type command struct {
	line int
	text string // as it stands in the script, blanks apart
	form *form  // nil for a block
	args args

	every  time.Duration // not 0: do it again and again, in the background
	repeat int           // of a block
	block  []command
}

// args are what stands in a command's open places, of each kind in order.
type args struct {
	nodes     []string
	durations []time.Duration
	counts    []int
	words     []string
	settings  settings
	expected  expectation
}

// settings are words of the form key=value, in order.
type settings [][2]string

// get returns the value of the key, or "".
func (s settings) get(key string) string {
	for _, kv := range s {
		if kv[0] == key {
			return kv[1]
		}
	}
	return ""
}

// Parse reads a script. name is for messages; each error tells it and the number
// of the line.
func Parse(name, text string) (*Script, error) {
	p := parser{script: &Script{Name: name}, open: [][]command{nil}}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(i+1, wordsOf(line)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	switch {
	case len(p.open) > 1:
		last := p.begun[len(p.begun)-1]
		return nil, fmt.Errorf("%s:%d: no end of %q", name, last.line, last.text)
	case p.script.Engines == nil:
		return nil, fmt.Errorf("%s: no line says for which engines it is", name)
	}
	p.script.commands = p.open[0]
	return p.script, nil
}

// wordsOf splits a line at blanks. A word that begins with # begins a comment.
func wordsOf(line string) []string {
	words := strings.Fields(line)
	if i := slices.IndexFunc(words, func(w string) bool { return w[0] == '#' }); i >= 0 {
		words = words[:i]
	}
	return words
}

// parser reads a script line by line.
type parser struct {
	script  *Script
	cluster bool        // the cluster's line was there
	open    [][]command // what blocks that have not ended hold, the outermost first
	begun   []command   // their first lines
}

func (p *parser) line(number int, words []string) error {
	if len(words) == 0 {
		return nil
	}
	c := command{line: number, text: strings.Join(words, " ")}
	switch words[0] {
	case "engines":
		return p.engines(words[1:])
	case "cluster":
		return p.describe(words[1:])
	case "repeat":
		n, err := countOf(words[1:])
		if err != nil {
			return err
		}
		c.repeat = n
		p.begun = append(p.begun, c)
		p.open = append(p.open, nil)
		return nil
	case "end":
		return p.end(words[1:])
	case "every":
		if len(words) < 3 {
			return fmt.Errorf("every what? It takes a duration and a command")
		}
		d, err := durationOf(words[1])
		if err != nil {
			return err
		}
		c.every = d
		words = words[2:]
	}
	var err error
	if c.form, c.args, err = match(words); err != nil {
		return err
	}
	p.add(c)
	return nil
}

func (p *parser) add(c command) {
	innermost := &p.open[len(p.open)-1]
	*innermost = append(*innermost, c)
}

func (p *parser) end(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q after end", strings.Join(rest, " "))
	}
	last := len(p.begun) - 1
	if last < 0 {
		return fmt.Errorf("end of nothing")
	}
	c := p.begun[last]
	c.block = p.open[last+1]
	p.begun, p.open = p.begun[:last], p.open[:last+1]
	p.add(c)
	return nil
}

func (p *parser) engines(names []string) error {
	if len(names) == 0 || p.script.Engines != nil {
		return fmt.Errorf("engines: one line names one or more")
	}
	for _, name := range names {
		i := slices.IndexFunc(replicatedtest.Engines(), func(e replicatedtest.Engine) bool { return e.String() == name })
		if i < 0 {
			return fmt.Errorf("engines: %q is none of %v", name, replicatedtest.Engines())
		}
		p.script.Engines = append(p.script.Engines, replicatedtest.Engines()[i])
	}
	return nil
}

// describe reads the cluster's line: what this package knows, else settings of the
// servers.
func (p *parser) describe(words []string) error {
	if p.cluster || len(p.open[0]) > 0 {
		return fmt.Errorf("cluster: one line, before all commands")
	}
	p.cluster = true
	s, err := settingsOf(words)
	if err != nil {
		return err
	}
	o := &p.script.Options
	for _, kv := range s {
		var n int
		switch kv[0] {
		case "replicas", "connections":
			if n, err = strconv.Atoi(kv[1]); err != nil || n < 1 {
				return fmt.Errorf("cluster: %s=%s is not a number above 0", kv[0], kv[1])
			}
			if kv[0] == "replicas" {
				o.Replicas = n
			} else {
				o.MaxConnections = n
			}
		case "synchronous":
			if o.Synchronous, err = strconv.ParseBool(kv[1]); err != nil {
				return fmt.Errorf("cluster: synchronous=%s is neither true nor false", kv[1])
			}
		default:
			if o.Settings == nil {
				o.Settings = make(map[string]string)
			}
			o.Settings[kv[0]] = kv[1]
		}
	}
	return nil
}

func settingsOf(words []string) (settings, error) {
	var s settings
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not of the form key=value", w)
		}
		s = append(s, [2]string{key, value})
	}
	return s, nil
}

func countOf(words []string) (int, error) {
	if len(words) == 1 {
		if n, err := strconv.Atoi(words[0]); err == nil && n > 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is not a number above 0", strings.Join(words, " "))
}

func durationOf(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a duration such as 2s or 200ms", word)
	}
	return d, nil
}
