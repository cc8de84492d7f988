package demo

import (
	"errors"
	"fmt"
	"time"
)

// promise is one line of the summary.
type promise struct {
	text   string // what was promised
	figure string // what was seen
	cause  error  // why it was broken, where an error tells
	state  outcome
}

type outcome uint8

const (
	held outcome = iota
	broken
	notShown // there was no time
)

// promises are those of the demo, in the order in which they were shown.
type promises struct{ list []promise }

func (p *promises) add(text string, ok bool, figure string) { p.because(text, ok, figure, nil) }

// because adds a promise with the error that tells why it was broken, if it was.
func (p *promises) because(text string, ok bool, figure string, cause error) {
	pr := promise{text: text, figure: figure}
	if !ok {
		pr.state, pr.cause = broken, cause
	}
	p.list = append(p.list, pr)
}

func (p *promises) skip(text, why string) {
	p.list = append(p.list, promise{text: text, figure: why, state: notShown})
}

func (p *promises) count(state outcome) int {
	n := 0
	for _, pr := range p.list {
		if pr.state == state {
			n++
		}
	}
	return n
}

// err says how many promises were broken. It is nil if none was, and some held.
func (p *promises) err() error {
	switch n := p.count(broken); {
	case n > 0:
		return fmt.Errorf("%d of %d promises did not hold", n, len(p.list))
	case p.count(held) == 0:
		return errors.New("nothing was shown")
	default:
		return nil
	}
}

// summary writes the table of promises. whole tells whether the demo has been
// shown to its end.
func (d *demo) summary(whole bool) {
	s := d.screen
	s.chapter(5, "What was promised, and what was seen")
	for _, p := range d.promises.list {
		mark, st := s.glyphs.ok, green
		switch p.state {
		case broken:
			mark, st = s.glyphs.bad, red
		case notShown:
			mark, st = s.glyphs.skipped, yellow
		}
		s.line("  " + s.paint(st, s.left(mark, width(s.glyphs.bad))) + " " + s.left(p.text, 36) + "  " + p.figure)
		if p.cause != nil {
			for _, l := range wrap(p.cause.Error(), screenWidth-6) {
				s.dim("      " + l)
			}
		}
	}
	took := fmt.Sprintf("  (%.0f s)", time.Since(d.began).Seconds())
	s.line("")
	switch n := d.promises.count(broken); {
	case n > 0:
		s.line("  " + s.paint(red, fmt.Sprintf("%d of %d promises did not hold.", n, len(d.promises.list))) + took)
	case !whole:
		s.line("  " + s.paint(red, "The demo did not come to its end.") + took)
	default:
		s.line("  " + s.paint(bold, fmt.Sprintf("%d promises held.", d.promises.count(held))) + took)
	}
	s.line("")
	s.line(`  In a program of yours: import _ "github.com/sqlreplicated/replicated", and`)
	s.line("    " + s.paint(cyan, `db, err := sql.Open("replicated", "postgres://app:secret@db1,db2,db3/shop")`))
}
