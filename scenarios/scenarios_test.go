package scenarios_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
	"github.com/sqlreplicated/replicated/scenarios"
)

// lanes is how many scripts run at a time on one engine, each on a cluster of its
// own. They wait most of the time.
const lanes = 2

// Every script of testdata, on each of its engines.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var all []*scenarios.Script
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenarios.Parse(filepath.Base(path), string(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	var engines sync.WaitGroup
	for _, e := range replicatedtest.Engines() {
		var scripts []*scenarios.Script
		for _, s := range all {
			if slices.Contains(s.Engines, e) {
				scripts = append(scripts, s)
			}
		}
		if len(scripts) > 0 {
			engines.Go(func() { t.Run(e.String(), func(t *testing.T) { onEngine(t, e, scripts) }) })
		}
	}
	engines.Wait()
}

// onEngine runs the scripts, those that want the same kind of cluster one after the
// other on the same lane where that does not leave another lane idle.
func onEngine(t *testing.T, e replicatedtest.Engine, scripts []*scenarios.Script) {
	replicatedtest.Require(t, e)
	queue := make(chan *scenarios.Script, len(scripts))
	for _, s := range scripts {
		queue <- s
	}
	close(queue)
	var running sync.WaitGroup
	for range lanes {
		running.Go(func() {
			var l lane
			defer l.close(t)
			for s := range queue {
				t.Run(strings.TrimSuffix(s.Name, ".txt"), func(t *testing.T) {
					if !s.Run(t, l.cluster(t, e, s.Options)) {
						l.close(t)
					}
				})
			}
		})
	}
	running.Wait()
}

// lane keeps a cluster from one script to the next.
type lane struct {
	c       *replicatedtest.Cluster
	options string
}

func (l *lane) cluster(t *testing.T, e replicatedtest.Engine, o replicatedtest.Options) *replicatedtest.Cluster {
	t.Helper()
	if l.c != nil && l.options == fmt.Sprint(o) {
		return l.c
	}
	l.close(t)
	c, err := replicatedtest.StartContext(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	l.c, l.options = c, fmt.Sprint(o)
	return c
}

func (l *lane) close(t *testing.T) {
	t.Helper()
	if l.c == nil {
		return
	}
	if err := l.c.Close(); err != nil {
		t.Error(err)
	}
	l.c = nil
}
