package parsers_test

import (
	"container/list"
	"fmt"
	"hash/maphash"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// verdicts is a way to come from a text to its verdict.
type verdicts interface {
	verdict(d classify.Dialect, sql string) classify.Verdict
}

// direct has no cache: what the driver does.
type direct struct{}

func (direct) verdict(d classify.Dialect, sql string) classify.Verdict {
	return classify.Classify(d, sql)
}

// syncMap is the standard library's concurrent map. It has no bound, so that it
// could not be used where texts are made of values.
type syncMap struct{ m sync.Map }

func (c *syncMap) verdict(d classify.Dialect, sql string) classify.Verdict {
	if v, ok := c.m.Load(sql); ok {
		return *v.(*classify.Verdict)
	}
	v := classify.Classify(d, sql)
	c.m.Store(strings.Clone(sql), &v)
	return v
}

const (
	// cacheLimit is how many texts the bounded caches hold.
	cacheLimit = 4096
	shards     = 64
)

// lru is what is reached for first: the texts used last, under one lock. A hit
// changes the order, so that readers exclude one another.
type lru struct {
	mu    sync.Mutex
	m     map[string]*list.Element
	order *list.List // of cached, the one used last in front
}

func newLRU() *lru { return &lru{m: make(map[string]*list.Element), order: list.New()} }

func (c *lru) verdict(d classify.Dialect, sql string) classify.Verdict {
	c.mu.Lock()
	if e, ok := c.m[sql]; ok {
		c.order.MoveToFront(e)
		v := e.Value.(*cached).v
		c.mu.Unlock()
		return v
	}
	c.mu.Unlock()
	e := &cached{strings.Clone(sql), classify.Classify(d, sql)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.m[sql]; ok {
		return e.v // another goroutine was faster
	}
	if c.order.Len() == cacheLimit {
		delete(c.m, c.order.Remove(c.order.Back()).(*cached).sql)
	}
	c.m[e.sql] = c.order.PushFront(e)
	return e.v
}

// sharded is maps under a lock each, chosen by the text's hash. A full one is
// emptied: the cheapest bound there is.
type sharded struct {
	seed   maphash.Seed
	shards [shards]struct {
		mu sync.RWMutex
		m  map[string]classify.Verdict
		_  [96]byte // no two locks on a line of the processor's cache
	}
}

func newSharded() *sharded {
	c := &sharded{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].m = make(map[string]classify.Verdict)
	}
	return c
}

func (c *sharded) verdict(d classify.Dialect, sql string) classify.Verdict {
	s := &c.shards[maphash.String(c.seed, sql)%shards]
	s.mu.RLock()
	v, ok := s.m[sql]
	s.mu.RUnlock()
	if ok {
		return v
	}
	v = classify.Classify(d, sql)
	s.mu.Lock()
	if len(s.m) == cacheLimit/shards {
		clear(s.m)
	}
	s.m[strings.Clone(sql)] = v
	s.mu.Unlock()
	return v
}

// directMapped is an array of slots without locks, chosen by the text's hash: a
// text displaces the one before it. No cache with a bound can do less on a hit, but
// of two texts of one slot that are used in turn neither is ever found.
type directMapped struct {
	seed  maphash.Seed
	slots [cacheLimit]atomic.Pointer[cached]
}

type cached struct {
	sql string
	v   classify.Verdict
}

func (c *directMapped) verdict(d classify.Dialect, sql string) classify.Verdict {
	slot := &c.slots[maphash.String(c.seed, sql)%cacheLimit]
	if e := slot.Load(); e != nil && e.sql == sql {
		return e.v
	}
	e := &cached{strings.Clone(sql), classify.Classify(d, sql)}
	slot.Store(e)
	return e.v
}

// BenchmarkCache asks whether a cache of verdicts would be worth having. Texts are
// copies, as those that an ORM makes are: a map has to compare them byte by byte.
//
// With texts=100 every text is in the caches; with texts=50000 most are not, which
// is what a program with values in its texts does to them.
func BenchmarkCache(b *testing.B) {
	caches := []struct {
		name string
		open func() verdicts
	}{
		{"none", func() verdicts { return direct{} }},
		{"syncmap", func() verdicts { return new(syncMap) }},
		{"lru", func() verdicts { return newLRU() }},
		{"sharded", func() verdicts { return newSharded() }},
		{"slots", func() verdicts { return &directMapped{seed: maphash.MakeSeed()} }},
	}
	for _, n := range []int{100, 50000} {
		texts := distinct(n)
		for _, goroutines := range []int{1, 64} {
			for _, c := range caches {
				if c.name == "syncmap" && n > cacheLimit {
					continue // without a bound it has no misses, and no end
				}
				b.Run(fmt.Sprintf("texts=%d/goroutines=%d/cache=%s", n, goroutines, c.name), func(b *testing.B) {
					cache := c.open()
					for _, s := range texts {
						cache.verdict(s.dialect, strings.Clone(s.sql))
					}
					b.ReportAllocs()
					b.ResetTimer() // b.Loop does it by itself, RunParallel does not
					if goroutines == 1 {
						for i := 0; b.Loop(); i++ {
							s := &texts[i%len(texts)]
							cache.verdict(s.dialect, s.sql)
						}
						return
					}
					// RunParallel starts GOMAXPROCS goroutines for each of these.
					b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
					var started atomic.Int64
					b.RunParallel(func(pb *testing.PB) {
						for i := int(started.Add(1)) * 7919; pb.Next(); i++ {
							s := &texts[i%len(texts)]
							cache.verdict(s.dialect, s.sql)
						}
					})
				})
			}
		}
	}
}

// distinct returns n texts, made of the short statements.
func distinct(n int) []statement {
	texts := make([]statement, n)
	for i := range texts {
		s := shortStatements[i%len(shortStatements)]
		// Behind the statement, so that comparing has to go to the end.
		s.sql += " /*" + strconv.Itoa(i) + "*/"
		texts[i] = s
	}
	return texts
}

// The caches give the verdict that the classifier gives, on a hit and on a miss.
func TestCachesAgree(t *testing.T) {
	texts := distinct(3 * cacheLimit)
	for name, c := range map[string]verdicts{
		"syncmap": new(syncMap),
		"lru":     newLRU(),
		"sharded": newSharded(),
		"slots":   &directMapped{seed: maphash.MakeSeed()},
	} {
		for range 2 {
			for _, s := range texts {
				if got, want := c.verdict(s.dialect, s.sql), classify.Classify(s.dialect, s.sql); got != want {
					t.Fatalf("%s: %+v, want %+v for %s", name, got, want, s.sql)
				}
			}
		}
	}
}
