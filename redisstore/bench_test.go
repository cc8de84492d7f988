package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// BenchmarkStore is what a call costs on loopback, and, as server-µs/op, how long
// the server is busy with it. Ping is the client's round trip alone.
func BenchmarkStore(b *testing.B) {
	r, s := start(b, nil)
	client := newClient(b, r.Addr())
	tok := written("c", 1<<40)
	save(b, s, tok, "user:1")
	keys := []string{"user:1", "tenant:42", "order:4711"}
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			do(b, r, "CONFIG", "RESETSTAT")
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(busy(b, r)/float64(b.N), "server-µs/op")
		})
	}
	run("Ping", func() error { return client.Ping(bg).Err() })
	run("LoadNothing", func() error { _, err := s.Load(bg, "nobody"); return err })
	run("Load", func() error { _, err := s.Load(bg, "user:1"); return err })
	run("Load3", func() error { _, err := s.Load(bg, keys...); return err })
	run("SaveSame", func() error { return s.Save(bg, tok, life, "user:1") })
	n := uint64(0)
	run("SaveOther", func() error { n++; return s.Save(bg, written("c", n), life, "user:1") })
	run("Save3", func() error { n++; return s.Save(bg, written("c", n), life, keys...) })
	user := 0
	run("SaveEachUser", func() error { user++; return s.Save(bg, tok, life, fmt.Sprint("each:", user)) })
}

// BenchmarkMemory is what a key of one token takes of the server's memory.
func BenchmarkMemory(b *testing.B) {
	r, s := start(b, nil)
	for b.Loop() {
	}
	used := func() float64 { return info(b, r, "memory", "used_memory") }
	for bucket := range 4000 {
		load(b, s, fmt.Sprint("epochs:", bucket))
	}
	for i, length := range []int{50, 200} {
		tok := written("c", 1<<40)
		if length > len(tok) {
			tok = merged(b, written("c", 1<<40), written("d", 1<<40), written("e", 1<<40), written("f", 1<<40))
		}
		before := used()
		const users = 5000
		for n := range users {
			save(b, s, tok, fmt.Sprint(i, "user:", n))
		}
		b.ReportMetric((used()-before)/users, fmt.Sprintf("bytes/key-of-%d", len(tok)))
	}
}

// busy returns how many microseconds the server has worked on scripts.
func busy(b *testing.B, r *replicatedtest.Redis) float64 {
	text := do(b, r, "INFO", "commandstats").(string)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:"); ok {
			_, rest, _ = strings.Cut(rest, "usec=")
			digits, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseFloat(digits, 64)
			must(b, err)
			return n
		}
	}
	return 0
}

func info(b *testing.B, r *replicatedtest.Redis, section, name string) float64 {
	b.Helper()
	for line := range strings.Lines(do(b, r, "INFO", section).(string)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, err := strconv.ParseFloat(value, 64)
			must(b, err)
			return n
		}
	}
	b.Fatalf("no %s", name)
	return 0
}
