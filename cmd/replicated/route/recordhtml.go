package route

import "io"

// writeRecordHTML writes the report as a page.
func writeRecordHTML(w io.Writer, r *recordReport) error {
	return pageTemplates.ExecuteTemplate(w, "record.html", newRecordPage(r))
}

// recordPage is the report with what the template cannot compute.
type recordPage struct {
	*recordReport
	Bar  pageBar
	Rows []recordPageFate
}

type recordPageFate struct {
	Colour int
	Title  string
	N      int64
	Share  string
	Whys   []recordPageWhy
}

type recordPageWhy struct{ What, N, Share string }

// fateColours are the colours of the chart, those of the style.
var fateColours = [fates]int{fateStays: 7, fateMoves: 0, fateStale: 2, fateBreaks: 1, fateRefused: 3, fateUndecided: 4}

func newRecordPage(r *recordReport) *recordPage {
	p := &recordPage{recordReport: r}
	x := 0.0
	for _, f := range append([]fateReport{r.Moving}, r.Fates...) {
		share := r.Total.Share(f.Fate)
		row := recordPageFate{Colour: fateColours[f.Fate], Title: f.Title, N: f.N, Share: percent(share)}
		if f.Fate != fateMoves && f.Fate != fateStays {
			for _, w := range f.Whys {
				row.Whys = append(row.Whys, recordPageWhy{w.what, thousands(w.n), percent(part(float64(w.n), float64(r.Total.Statements)))})
			}
		}
		p.Rows = append(p.Rows, row)
		if width := share * chartWidth; width > 0 {
			s := pageSegment{X: x, Width: width, Colour: row.Colour, Title: f.Title + ": " + row.Share}
			if width >= labelled {
				s.Label = row.Share
			}
			p.Bar.Segments = append(p.Bar.Segments, s)
			x += width
		}
	}
	return p
}

// Empty tells that there is nothing to show.
func (p *recordPage) Empty() bool { return p.Total.Statements == 0 }

// Moves is the share of all statements that replicas would serve.
func (p *recordPage) Moves() float64 { return p.Total.Share(fateMoves) }
