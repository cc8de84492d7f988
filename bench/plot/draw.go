package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Sizes in pixels. Each span has a panel; they stand side by side.
const (
	panelWidth, panelHeight = 300.0, 240.0
	left, top               = 52.0, 74.0
	gap                     = 155.0 // to the right of each panel, for the names of the lines
	bottom                  = 96.0
	between                 = 14.0 // the least distance of two names
)

// names are the policies as the picture calls them.
var names = map[string]string{
	"proof":     "proof",
	"window-2s": "2 s window",
	"window-5s": "5 s window",
	"primary":   "all on the primary",
}

// style has one set of colours for light pages and one for dark ones. The lines'
// colours can be told apart by those who see few colours, and differ in their dashes.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 14px; font-weight: 600 }
.small { font-size: 11px; fill: #57606a }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { stroke-width: 2 }
.proof { stroke: #0969da; fill: #0969da }
.window-2s { stroke: #bc4c00; fill: #bc4c00; stroke-dasharray: 7 3 }
.window-5s { stroke: #8250df; fill: #8250df; stroke-dasharray: 2 3 }
.primary { stroke: #57606a; fill: #57606a; stroke-dasharray: 10 3 2 3 }
.stale { stroke: #cf222e; stroke-width: 2.5; fill: none }
.staletext { fill: #cf222e; font-size: 11px }
text, circle { stroke: none !important }
polyline { fill: none !important }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.small { fill: #9198a1 }
.grid { stroke: #3d444d }
.proof { stroke: #4493f8; fill: #4493f8 }
.window-2s { stroke: #f0883e; fill: #f0883e }
.window-5s { stroke: #ab7df8; fill: #ab7df8 }
.primary { stroke: #9198a1; fill: #9198a1 }
.stale { stroke: #ff7b72 }
.staletext { fill: #ff7b72 }
}
</style>
`

// draw returns the picture, as SVG.
func draw(figures []figure) []byte {
	var b bytes.Buffer
	spans := distinct(figures, func(f figure) time.Duration { return f.span })
	width, height := left+float64(len(spans))*(panelWidth+gap), top+panelHeight+bottom
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Share of reads on replicas against replication lag, for each policy</title>\n<desc>%s</desc>\n", words(figures))
	b.WriteString(style)
	text(&b, left, 20, "title", "start", "Reads on replicas, by sessions that write once and then read what they wrote ten times")
	for i, span := range spans {
		panel(&b, left+float64(i)*(panelWidth+gap), only(figures, func(f figure) bool { return f.span == span }), span)
	}
	engines := distinct(figures, func(f figure) string { return f.engine })
	text(&b, left, height-34, "small", "start", "Lines: mean of "+strings.Join(engines, ", ")+". Dots: each of them. The policies ran at the same time on the same servers.")
	text(&b, left, height-16, "small", "start", "A cross: reads that lacked their session's own write.")
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// words tells the figures to those who do not see the picture.
func words(figures []figure) string {
	var parts []string
	for _, span := range distinct(figures, func(f figure) time.Duration { return f.span }) {
		for _, policy := range distinct(figures, func(f figure) string { return f.policy }) {
			line := fmt.Sprintf("Sessions of %s, %s:", duration(span), names[policy])
			for _, p := range points(figures, span, policy) {
				line += fmt.Sprintf(" %.0f %% at %s", 100*p.share, duration(p.lag))
				if p.stale > 0 {
					line += fmt.Sprintf(" (%s)", p.staleness())
				}
				line += ","
			}
			parts = append(parts, strings.TrimSuffix(line, ",")+".")
		}
	}
	return strings.Join(parts, " ")
}

// point is what a line passes through.
type point struct {
	lag   time.Duration
	share float64
	stale float64
	each  []figure
}

func (p point) staleness() string {
	return fmt.Sprintf("%.2g %% stale at %s", 100*p.stale, duration(p.lag))
}

func points(figures []figure, span time.Duration, policy string) []point {
	var list []point
	for _, lag := range distinct(figures, func(f figure) time.Duration { return f.lag }) {
		each := only(figures, func(f figure) bool { return f.span == span && f.policy == policy && f.lag == lag })
		if len(each) > 0 {
			share, stale := mean(each)
			list = append(list, point{lag: lag, share: share, stale: stale, each: each})
		}
	}
	return list
}

func panel(b *bytes.Buffer, x0 float64, figures []figure, span time.Duration) {
	lags := distinct(figures, func(f figure) time.Duration { return f.lag })
	low, high := math.Log(lags[0].Seconds()), math.Log(lags[len(lags)-1].Seconds())
	x := func(lag time.Duration) float64 {
		return x0 + 12 + (panelWidth-24)*(math.Log(lag.Seconds())-low)/max(high-low, 1e-9)
	}
	y := func(share float64) float64 { return top + panelHeight*(1-share) }

	text(b, x0, top-18, "", "start", fmt.Sprintf("within %s of the write", duration(span)))
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", x0, y(share), x0+panelWidth, y(share))
		text(b, x0-6, y(share)+4, "small", "end", fmt.Sprintf("%.0f %%", 100*share))
	}
	for _, lag := range lags {
		text(b, x(lag), top+panelHeight+18, "small", "middle", duration(lag))
	}
	text(b, x0+panelWidth/2, top+panelHeight+36, "small", "middle", "replication lag")

	type label struct {
		class, text string
		y           float64
	}
	var labels []label
	policies := distinct(figures, func(f figure) string { return f.policy })
	slices.Reverse(policies) // the first lies on top
	for _, policy := range policies {
		line := points(figures, span, policy)
		var path []string
		for _, p := range line {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p.lag), y(p.share)))
		}
		fmt.Fprintf(b, `<polyline class="line %s" points="%s"/>`+"\n", policy, strings.Join(path, " "))
		for _, p := range line {
			for _, f := range p.each {
				fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="2.5"/>`+"\n", policy, x(f.lag), y(f.share))
			}
			if p.stale > 0 {
				cross(b, x(p.lag), y(p.share))
			}
		}
		end := y(line[len(line)-1].share)
		labels = append(labels, label{policy, names[policy], end})
		for _, p := range line {
			if p.stale > 0 {
				labels = append(labels, label{"staletext", p.staleness(), end})
			}
		}
	}
	slices.SortStableFunc(labels, func(a, b label) int { return int(math.Round(a.y - b.y)) })
	for i := len(labels) - 2; i >= 0; i-- { // from below, so that none leaves the panel
		labels[i].y = min(labels[i].y, labels[i+1].y-between)
	}
	for _, l := range labels {
		text(b, x0+panelWidth+4, l.y+4, l.class, "start", l.text)
	}
}

func cross(b *bytes.Buffer, x, y float64) {
	const r = 5
	fmt.Fprintf(b, `<path class="stale" d="M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f"/>`+"\n", x-r, y-r, x+r, y+r, x-r, y+r, x+r, y-r)
}

func text(b *bytes.Buffer, x, y float64, class, anchor, s string) {
	fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, s)
}

// duration writes whole seconds and milliseconds as people do.
func duration(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d ms", d/time.Millisecond)
}
