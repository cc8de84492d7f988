package scenarios

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

var expectForms = []form{{pattern: "expect <expectation>", run: (*world).expect}}

// expectation is what a script expects of a figure.
type expectation struct {
	text   string
	figure figure
	about  string // the node, or the kind of notice, that the figure is of
	op     string
	want   float64
}

// figure is something that can be expected of a run. Its value is a count,
// nanoseconds or a percentage.
type figure struct {
	name  string
	unit  unit
	about bool // the name is followed by what it is of
	value func(w *world, about string) (float64, error)
}

type unit uint8

const (
	count unit = iota
	duration
	percent
)

func figures() []figure {
	list := []figure{
		{name: "reads", value: func(w *world, _ string) (float64, error) { c := w.tally.whole(); return float64(len(c.reads)), nil }},
		{name: "worst read", unit: duration, value: func(w *world, _ string) (float64, error) { c := w.tally.whole(); return float64(c.worst.took), nil }},
		// Of the last phase, and of one node or all replicas.
		{name: "reads on", about: true, value: (*world).readsOn},
		{name: "reads on replicas", unit: percent, value: (*world).readsOnReplicas},
		{name: "acknowledged writes", value: func(w *world, _ string) (float64, error) { return float64(w.ledger.acknowledged()), nil }},
		{name: "lost writes", value: audited(func(a *audit) []int64 { return a.lost })},
		{name: "doubled writes", value: audited(func(a *audit) []int64 { return a.doubled })},
		{name: "phantom writes", value: audited(func(a *audit) []int64 { return a.phantom })},
		{name: "stale reads", value: audited(func(a *audit) []int64 { return a.stale })},
		{name: "stray writes", value: (*world).countStrays},
		{name: "worst pause of writes", unit: duration, value: (*world).worstPause},
		{name: "notices", about: true, value: func(w *world, kind string) (float64, error) { return float64(w.noticed(kind)), nil }},
	}
	for _, e := range []event{failedReads, refusedReads, brokenRows, brokenTransactions, wrongAnswers, failedWrites, unknownWrites} {
		list = append(list, figure{name: string(e), value: func(w *world, _ string) (float64, error) {
			c := w.tally.whole()
			return float64(c.events[e]), nil
		}})
	}
	return list
}

var comparisons = map[string]func(got, want float64) bool{
	"=":  func(got, want float64) bool { return got == want },
	"<":  func(got, want float64) bool { return got < want },
	"<=": func(got, want float64) bool { return got <= want },
	">":  func(got, want float64) bool { return got > want },
	">=": func(got, want float64) bool { return got >= want },
}

// expectationOf reads "figure op value".
func expectationOf(words []string) (expectation, error) {
	if len(words) < 3 {
		return expectation{}, fmt.Errorf("an expectation is of the form \"failed reads = 0\"")
	}
	x := expectation{text: strings.Join(words, " "), op: words[len(words)-2]}
	if comparisons[x.op] == nil {
		return x, fmt.Errorf("%q is none of = < <= > >=", x.op)
	}
	name := strings.Join(words[:len(words)-2], " ")
	if !x.find(name) {
		var names []string
		for _, f := range figures() {
			names = append(names, f.name)
		}
		return x, fmt.Errorf("%q is no figure; there are: %s", name, strings.Join(names, ", "))
	}
	var err error
	x.want, err = x.figure.unit.parse(words[len(words)-1])
	return x, err
}

func (x *expectation) find(name string) bool {
	for _, f := range figures() {
		if name == f.name && !f.about {
			x.figure = f
			return true
		}
	}
	for _, f := range figures() {
		if about, ok := strings.CutPrefix(name, f.name+" "); ok && f.about && !strings.Contains(about, " ") {
			x.figure, x.about = f, about
			return f.name != "reads on" || nodeName.MatchString(about)
		}
	}
	return false
}

func (u unit) parse(word string) (float64, error) {
	switch u {
	case duration:
		d, err := durationOf(word)
		return float64(d), err
	case percent:
		number, ok := strings.CutSuffix(word, "%")
		if n, err := strconv.Atoi(number); ok && err == nil {
			return float64(n), nil
		}
		return 0, fmt.Errorf("%q is not a percentage such as 50%%", word)
	default:
		n, err := strconv.Atoi(word)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", word)
		}
		return float64(n), nil
	}
}

func (u unit) format(v float64) string {
	switch u {
	case duration:
		return round(time.Duration(v)).String()
	case percent:
		return fmt.Sprintf("%.0f%%", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// slack is by what bounds on times are multiplied: machines that run tests for
// everybody are slow at times, and what is tested here is no less true then.
func slack() float64 {
	if os.Getenv("CI") != "" {
		return 3
	}
	return 1
}

// expect fails the test if the figure is not as expected; the script goes on.
func (w *world) expect(a args) error {
	x := a.expected
	got, err := x.figure.value(w, x.about)
	if err != nil {
		return err
	}
	want := x.want
	if x.figure.unit == duration && strings.HasPrefix(x.op, "<") {
		want *= slack()
	}
	is := x.figure.unit.format(got)
	if comparisons[x.op](got, want) {
		w.transcript.did("expect %s: it is %s", x.text, is)
		return nil
	}
	w.transcript.did("expect %s: NO, IT IS %s", x.text, is)
	w.t.Errorf("%s:%d: expect %s: it is %s%s", w.script.Name, w.line, x.text, is, w.tally.why(x.figure.name))
	return nil
}

// always are the expectations that hold at the end of every script, whatever it has
// done to the servers.
func (w *world) always() {
	w.line = 0
	for _, e := range []string{"wrong answers = 0", "stale reads = 0", "doubled writes = 0", "phantom writes = 0"} {
		x, err := expectationOf(strings.Fields(e))
		if err == nil {
			err = w.expect(args{expected: x})
		}
		if err != nil {
			w.t.Errorf("%s: %s: %v", w.script.Name, e, err)
		}
	}
}

func (w *world) readsOn(name string) (float64, error) {
	n, err := w.node(name)
	if err != nil {
		return 0, err
	}
	return float64(w.last.nodes[n.Name()]), nil
}

func (w *world) readsOnReplicas(string) (float64, error) {
	all, replicas := 0, 0
	for node, n := range w.last.nodes {
		all += n
		if node != w.cluster.Primary().Name() {
			replicas += n
		}
	}
	return 100 * float64(replicas) / float64(max(1, all)), nil
}

func (w *world) countStrays(string) (float64, error) {
	all := 0
	for node, ids := range w.strays() {
		all += len(ids)
		w.transcript.told("%s was sent, although it was no longer the primary: %s", node, some(ids))
	}
	return float64(all), nil
}

// worstPause is the longest time from when a new primary accepts writes until one is
// acknowledged.
func (w *world) worstPause(string) (float64, error) {
	var worst time.Duration
	for _, c := range w.changes {
		worst = max(worst, c.resumed.Sub(c.accepts))
	}
	return float64(worst), nil
}

// audited makes a figure of what the database says of the ledger. It ends the load,
// since a write that is under way is neither there nor not.
func audited(part func(*audit) []int64) func(*world, string) (float64, error) {
	return func(w *world, _ string) (float64, error) {
		w.endLoad()
		if w.audited == nil {
			rows, err := w.rowsOfLedger()
			if err != nil {
				return 0, err
			}
			a := w.ledger.audit(rows)
			w.audited = &a
			w.transcript.told("the ledger on %s: %v", w.cluster.Primary().Name(), a)
		}
		return float64(len(part(w.audited))), nil
	}
}

// rowsOfLedger returns how often the primary has each number.
func (w *world) rowsOfLedger() (map[int64]int, error) {
	db, err := sql.Open(w.cluster.DriverName(), w.cluster.Primary().DSN())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(w.ctx, "SELECT id, count(*) FROM ledger GROUP BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	times := make(map[int64]int)
	for rows.Next() {
		var id int64
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		times[id] = n
	}
	return times, rows.Err()
}
