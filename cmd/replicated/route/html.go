package route

import (
	"embed"
	"html/template"
	"io"
)

// The pages stand by themselves: their style and their charts are in them, and no
// script.
//
//go:embed report.html record.html style.html
var pages embed.FS

var pageTemplates = template.Must(template.New("").Funcs(template.FuncMap{
	"thousands": thousands,
	"percent":   percent,
	"printable": printable,
	"inALine":   inALine,
}).ParseFS(pages, "*.html"))

// writeHTML writes the report as a page.
func writeHTML(w io.Writer, r *report) error {
	return pageTemplates.ExecuteTemplate(w, "report.html", newPageReport(r))
}

// pageReport is the report with what the template cannot compute.
type pageReport struct {
	*report
	Noun string
	// Headline is the share that moves: of the time, if that is known.
	Headline    string
	HeadlineOf  string
	Bars        []pageBar
	Kinds       []pageKind
	MovingRows  pageList
	SeemingRows pageList
}

// pageBar is a bar of the chart, its widths in per mille of the whole.
type pageBar struct {
	Name     string
	Segments []pageSegment
}

type pageSegment struct {
	X, Width float64
	Colour   int // 0 the replicas, from 1 on the reasons
	Label    string
	Title    string
}

// Percent is where the segment begins, PercentWide how wide it is, in hundredths
// of the whole.
func (s pageSegment) Percent() float64 { return s.X * 100 / chartWidth }

func (s pageSegment) PercentWide() float64 { return s.Width * 100 / chartWidth }

type pageKind struct {
	Why    string
	Colour int
	pageAmount
	List pageList
}

type pageAmount struct{ Calls, CallShare, Time, TimeShare string }

type pageList struct {
	Rows []pageRow
	More int
}

type pageRow struct {
	pageAmount
	Text, Why string
}

const (
	chartWidth = 1000.0
	// colours is how many reasons have one of their own; the others share the last.
	colours = 7
	// labelled is how wide a segment must be for its share to stand in it.
	labelled = 70.0
)

func newPageReport(r *report) *pageReport {
	p := &pageReport{report: r, Noun: r.noun(), Headline: percent(r.share(r.Replica)), HeadlineOf: "of the " + r.noun()}
	if r.Timed {
		p.HeadlineOf = "of the time"
	}
	p.Bars = []pageBar{p.bar("share of "+r.noun(), r.callShare)}
	if r.Timed {
		p.Bars = append(p.Bars, p.bar("share of time", r.timeShare))
	}
	for i, k := range r.Kinds {
		p.Kinds = append(p.Kinds, pageKind{Why: k.Why, Colour: min(i+1, colours), pageAmount: p.amountOf(k.amount), List: p.list(k.List)})
	}
	p.MovingRows, p.SeemingRows = p.list(r.Moving), p.list(r.Disguised)
	return p
}

func (p *pageReport) bar(name string, share func(amount) float64) pageBar {
	b := pageBar{Name: name}
	x := 0.0
	add := func(title string, colour int, a amount) {
		width := share(a) * chartWidth
		if width <= 0 {
			return
		}
		s := pageSegment{X: x, Width: width, Colour: colour, Title: title + ": " + percent(share(a))}
		if width >= labelled {
			s.Label = percent(share(a))
		}
		b.Segments = append(b.Segments, s)
		x += width
	}
	add("to the replicas", 0, p.Replica)
	for i, k := range p.report.Kinds {
		add(k.Why, min(i+1, colours), k.amount)
	}
	return b
}

func (p *pageReport) amountOf(a amount) pageAmount {
	return pageAmount{thousands(a.calls), percent(p.callShare(a)), duration(a.took), percent(p.timeShare(a))}
}

func (p *pageReport) list(l listReport) pageList {
	list := pageList{More: l.More}
	for _, g := range l.Rows {
		list.Rows = append(list.Rows, pageRow{pageAmount: p.amountOf(g.amount), Text: printable(g.text), Why: g.why})
	}
	return list
}

// ReplicaAmount and PrimaryAmount are for the page's table.
func (p *pageReport) ReplicaAmount() pageAmount { return p.amountOf(p.Replica) }

// PrimaryAmount is the rest.
func (p *pageReport) PrimaryAmount() pageAmount { return p.amountOf(p.Primary) }

// WriteShare is the part of the statements that count as writes.
func (p *pageReport) WriteShare() string {
	return percent(part(float64(p.Writes), float64(p.Total.calls)))
}

// Empty tells that there is nothing to show.
func (p *pageReport) Empty() bool { return p.Total.calls == 0 }
