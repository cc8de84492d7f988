package difftest_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/classify/difftest"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// verdict says whether a text may run on a replica.
type verdict func(d classify.Dialect, text string) bool

// anyRead is true if the text is a read by the dialect or by one of the dialects
// for servers that are not known.
func anyRead(d classify.Dialect, text string) bool {
	return classify.Classify(d, text).Replica() || classify.Classify(classify.Generic, text).Replica() ||
		d != classify.Postgres && classify.Classify(classify.AnyMySQL, text).Replica()
}

func number(t *testing.T, name string, def int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// eachEngine runs a test on every engine.
func eachEngine(t *testing.T, test func(t *testing.T, e replicatedtest.Engine)) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			replicatedtest.Require(t, e)
			test(t, e)
		})
	}
}

// What the grammar makes and the classifier calls a read changes nothing, and a
// replica runs it.
func TestGenerated(t *testing.T) {
	reads := 3000
	if os.Getenv("CI") == "true" {
		reads = 15000
	}
	reads = number(t, "REPLICATED_DIFF", reads)
	seed := number(t, "REPLICATED_DIFF_SEED", 1)
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		if e == replicatedtest.MySQL {
			reads /= 10
		}
		o := newOracle(t, e)
		n := o.generate(seed, reads, anyRead)
		o.report(fmt.Sprintf("seed %d, %d statements made", seed, n))
		if o.valid*100 < o.run*70 {
			t.Errorf("the server liked only %d of %d statements", o.valid, o.run)
		}
	})
}

const batchSize = 200

// generate makes statements until there were enough reads by v, and runs these. It
// returns the number made.
func (o *oracle) generate(seed, reads int, v verdict) (made int) {
	g := difftest.NewGenerator(o.dialect, uint64(seed), o.dir)
	i := 0
	var skip *regexp.Regexp // to look past what has been found
	if re := os.Getenv("REPLICATED_DIFF_SKIP"); re != "" {
		skip = regexp.MustCompile(re)
	}
	for mode := 0; reads > 0 && len(o.findings) <= maxFindings; mode++ {
		// Of three batches, one runs in another mode.
		modes := [][]string{nil, nil}
		if mode%2 == 1 {
			modes[1] = o.modes[mode/2%len(o.modes)]
		}
		batches := make([][]string, len(modes))
		for b := range batches {
			for len(batches[b]) < min(batchSize, max(reads, 1)) {
				s := g.Statement(i)
				i++
				if !v(o.dialect, s.Text) || skip != nil && skip.MatchString(s.Text) {
					continue
				}
				if s.Writes || s.Danger {
					o.claimed = append(o.claimed, s.Text)
					continue
				}
				batches[b] = append(batches[b], s.Text)
			}
			reads -= len(batches[b])
		}
		o.check(modes, batches)
	}
	return i
}

func (o *oracle) report(what string) {
	o.t.Helper()
	o.t.Logf("%s: %s; %d called reads ran, %d%% valid", o.dialect, what, o.run, o.valid*100/max(o.run, 1))
	codes := slices.SortedFunc(maps.Keys(o.errors), func(a, b string) int { return o.errors[b].n - o.errors[a].n })
	for _, c := range codes[:min(8, len(codes))] {
		f := o.errors[c]
		o.t.Logf("error %s, %d times: %s: %q", c, f.n, f.message, f.text)
	}
	for _, text := range o.claimed {
		o.t.Errorf("called a read, and was not run: %q", text)
	}
	for _, f := range o.findings {
		o.t.Errorf("no read: %v", f)
	}
}

// The statements of the corpora, one at a time: what they are called, they are.
func TestCorpora(t *testing.T) {
	eachEngine(t, func(t *testing.T, e replicatedtest.Engine) {
		o := newOracle(t, e)
		var reads []string
		for _, c := range corpora(t) {
			// Those of other dialects, too: some are understood.
			if anyRead(o.dialect, c.text) {
				reads = append(reads, c.text)
			}
		}
		if len(reads) < 40 {
			t.Fatalf("only %d reads", len(reads))
		}
		slices.Sort(reads)
		for batch := range slices.Chunk(slices.Compact(reads), batchSize) {
			o.inAllModes(batch)
		}
		o.report(fmt.Sprintf("%d statements of the corpora", len(reads)))
	})
}

type corpusText struct {
	dialect classify.Dialect
	text    string
}

// corpora returns all statements of the classifier's test data.
func corpora(t *testing.T) (all []corpusText) {
	t.Helper()
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00")
	add := func(dialect, text string) {
		d, ok := classify.ParseDialect(dialect)
		if !ok {
			return
		}
		text = unescape.Replace(text)
		text = strings.NewReplacer("$1", "1", "$2", "1", "$3", "1").Replace(text)
		all = append(all, corpusText{d, text})
	}
	dir, err := os.ReadDir("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range dir {
		data, err := os.ReadFile("../testdata/" + entry.Name())
		if entry.IsDir() {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.HasSuffix(entry.Name(), ".tsv"):
				if f := strings.Split(line, "\t"); len(f) == 6 {
					add(f[1], f[4])
				}
			case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "\t"):
			default:
				if dialect, text, ok := strings.Cut(line, ": "); ok {
					add(dialect, text)
				}
			}
		}
	}
	return all
}

// A statement depends on its seed and number alone.
func TestGeneratorReplays(t *testing.T) {
	for _, d := range []classify.Dialect{classify.Postgres, classify.MySQL, classify.MariaDB} {
		a, b := difftest.NewGenerator(d, 5, "/d"), difftest.NewGenerator(d, 5, "/d")
		for i := range 200 {
			a.Statement(i)
		}
		if x, y := a.Statement(77), b.Statement(77); x != y {
			t.Errorf("%v: %q, then %q", d, x.Text, y.Text)
		}
	}
}

// What writes is no read, whoever is asked; for many more statements than are run.
func TestWritesAreNoReads(t *testing.T) {
	start := time.Now()
	for _, d := range []classify.Dialect{classify.Postgres, classify.MySQL, classify.MariaDB} {
		g := difftest.NewGenerator(d, 9, "/nowhere")
		reads := 0
		for i := range 100000 {
			s := g.Statement(i)
			read := anyRead(d, s.Text)
			if read {
				reads++
			}
			if read && (s.Writes || s.Danger) {
				t.Errorf("%v: called a read: %q", d, s.Text)
			}
		}
		t.Logf("%v: %d of 100000 called reads", d, reads)
	}
	t.Logf("in %v", time.Since(start))
}
