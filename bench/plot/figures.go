package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// figure is one line of the table.
type figure struct {
	engine string
	span   time.Duration // how long a session reads
	lag    time.Duration
	policy string
	share  float64 // of the reads on replicas
	stale  float64 // of those that lacked their session's write
}

var columns = []string{"engine", "span_ms", "lag_ms", "policy", "reads", "share", "stale", "load"}

// parse reads the table: tab-separated, with names of columns on top.
func parse(r io.Reader) ([]figure, error) {
	table := csv.NewReader(r)
	table.Comma = '\t'
	rows, err := table.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 || !slices.Equal(rows[0], columns) {
		return nil, fmt.Errorf("want the columns %v, and a line below them", columns)
	}
	var figures []figure
	for i, row := range rows[1:] {
		span, err1 := strconv.Atoi(row[1])
		lag, err2 := strconv.Atoi(row[2])
		reads, err3 := strconv.Atoi(row[4])
		share, err4 := strconv.ParseFloat(row[5], 64)
		stale, err5 := strconv.Atoi(row[6])
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
		}
		figures = append(figures, figure{
			engine: row[0], span: time.Duration(span) * time.Millisecond, lag: time.Duration(lag) * time.Millisecond,
			policy: row[3], share: share, stale: float64(stale) / float64(max(reads, 1)),
		})
	}
	return figures, nil
}

// distinct returns what of has to say of the figures, in order, once each.
func distinct[T comparable](figures []figure, of func(figure) T) []T {
	var list []T
	for _, f := range figures {
		if x := of(f); !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

func only(figures []figure, ok func(figure) bool) []figure {
	return slices.DeleteFunc(slices.Clone(figures), func(f figure) bool { return !ok(f) })
}

// mean is the mean over the engines.
func mean(figures []figure) (share, stale float64) {
	for _, f := range figures {
		share += f.share / float64(len(figures))
		stale += f.stale / float64(len(figures))
	}
	return share, stale
}
