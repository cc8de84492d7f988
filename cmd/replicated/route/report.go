package route

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// report is what both forms of a report show.
type report struct {
	Source  string
	Dialect string
	Counted bool // how often statements ran is known; else each is counted once
	Timed   bool // times are known of most calls

	Total, Replica, Primary amount
	Writes                  int64

	Kinds     []kindReport
	Moving    listReport
	Disguised listReport
	Notes     []string
}

// kindReport is what stays on the primary for one reason.
type kindReport struct {
	amount
	Why  string
	List listReport
}

// listReport is the first statements of a list.
type listReport struct {
	Rows []*group
	More int // how many there are besides
}

func (j *job) report() *report {
	s := j.sum
	if s == nil {
		// No input was there at all.
		s = newSummary(newNormalizer(classify.Generic), false)
	}
	r := &report{
		Source: j.source, Dialect: j.dialect.String(), Counted: j.log, Timed: s.byTime(),
		Total: s.total, Replica: s.replica, Primary: s.primary, Writes: s.writes,
		Moving:    first(s.moving(), j.top),
		Disguised: first(s.disguised(), 2*j.top),
	}
	if j.dialect == classify.AnyMySQL {
		r.Dialect = "mysql or mariadb"
	}
	for _, k := range s.kinds() {
		r.Kinds = append(r.Kinds, kindReport{amount: k.amount, Why: k.why, List: first(k.groups, j.top)})
	}
	r.Notes = j.notes(s)
	return r
}

func first(list []*group, n int) listReport {
	n = min(n, len(list))
	return listReport{Rows: list[:n], More: len(list) - n}
}

// notes says what the numbers do not.
func (j *job) notes(s *summary) []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if j.log {
		add("Reads that follow a write closely wait for a replica that has it, or go to the primary. How many do depends on the lag and is not in these numbers.")
	}
	switch {
	case j.live:
		add("The server counts statements, not sessions: reads inside transactions count as moving, though they stay.")
	case j.log && j.decider != nil && j.decider.sessions == nil:
		add("A slow log has not all statements of a session: reads inside transactions count as moving, though they stay. With long_query_time=0 it has all statements.")
	case j.log:
		add("Reads inside transactions stay. Read-only ones begun by BeginTx with sql.TxOptions{ReadOnly: true} run wholly on a replica.")
	}
	if j.dialect == classify.Generic {
		add("Without -dialect, a statement is a read only if it is one in each dialect, and names in double quotes are hidden, because they may be values.")
	}
	if s.total.timed < s.total.calls && s.total.took > 0 {
		add("The time is known of %s of %s calls.", thousands(s.total.timed), thousands(s.total.calls))
	}
	if s.overflow > 0 {
		add("There are more than %s different statements; %s calls of further ones are counted together.", thousands(maxGroups), thousands(s.overflow))
	}
	if j.skipped > 0 {
		add("%s lines or records could not be read and were left out.", thousands(j.skipped))
	}
	return notes
}

// share returns the part of all that a is, by time if times are known.
func (r *report) share(a amount) float64 {
	if r.Timed {
		return part(float64(a.took), float64(r.Total.took))
	}
	return r.callShare(a)
}

func (r *report) callShare(a amount) float64 {
	return part(float64(a.calls), float64(r.Total.calls))
}

func (r *report) timeShare(a amount) float64 {
	return part(float64(a.took), float64(r.Total.took))
}

func part(a, of float64) float64 {
	if of == 0 {
		return 0
	}
	return a / of
}

// percent writes a share. What is not all is not called 100 %, and what is not
// nothing is not called 0 %.
func percent(share float64) string {
	switch {
	case share == 0:
		return "0 %"
	case share == 1:
		return "100 %"
	case share < 0.001:
		return "< 0.1 %"
	case share > 0.999:
		return "> 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", share*100)
}

// thousands writes a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// duration writes a time with three digits or so.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}
