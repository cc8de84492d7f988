package flows_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sqlreplicated/replicated/flows/app"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

const (
	// delay is how far the replicas are behind.
	delay = 300 * time.Millisecond
	// maxLag is replicated.max_lag.
	maxLag = 3 * time.Second
	// margin is how much longer tokens live, at least.
	margin = 5 * time.Second
	// wanted is the part of the reads that replicas are to serve.
	wanted = 0.85
)

// effortOf is two flows of each user, or what the environment says.
func effortOf(t *testing.T) effort {
	t.Helper()
	e := effort{users: number(t, "REPLICATED_FLOWS_USERS", 30)}
	e.flows = number(t, "REPLICATED_FLOWS", 2*e.users)
	return e
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a number of them", name, text)
	}
	return n
}

// startCluster starts servers whose replicas are behind, with the table.
func startCluster(t *testing.T, behind time.Duration) *replicatedtest.Cluster {
	t.Helper()
	c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{
		NoStatementLog: true, MaxConnections: 400,
		// A standby that is always behind while the primary is always written to never
		// has the newest of what was received, by which it would measure
		// max_standby_streaming_delay: after 30 s it cancels at once each read that is in
		// the way of what it applies. A read of which a row has been handed out by then
		// fails, which is not what is tried here.
		ReplicaSettings: map[string]string{"max_standby_streaming_delay": "-1"},
	})
	if _, err := c.Primary().DB(t).ExecContext(t.Context(), app.Schema); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitCaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Replicas() {
		if err := n.Delay(behind); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// runAll runs variants at the same time, each on a site of its own, all on one
// cluster, and shows what came out of it.
func runAll(t *testing.T, c *replicatedtest.Cluster, variants []variant, e effort) map[string]outcome {
	t.Helper()
	sites := make([]*site, len(variants))
	for i := range variants {
		v := &variants[i]
		if v.maxLag == 0 {
			v.maxLag = maxLag
		}
		if v.flow == (flow{}) {
			v.flow = usual
		}
		sites[i] = startSite(t, v.configs(c))
	}
	begin := time.Now()
	outcomes := make([]outcome, len(variants))
	var running sync.WaitGroup
	for i, v := range variants {
		running.Go(func() {
			var err error
			e := effort{users: e.users, flows: e.flows * int(usual.span/v.span)}
			if outcomes[i], err = v.run(t.Context(), sites[i], e); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
		})
	}
	running.Wait()
	named := make(map[string]outcome)
	for _, o := range outcomes {
		named[o.name] = o
		t.Logf("%s: %s", o.name, o.details())
	}
	t.Logf("%d users each; %v\n%s", e.users, time.Since(begin).Round(time.Second), table(outcomes))
	return named
}

// configs are what a variant's processes are started with.
func (v variant) configs(c *replicatedtest.Cluster) (configs [2]app.Config) {
	for i := range configs {
		configs[i] = app.Config{
			DSN:          c.DSN(fmt.Sprint("replicated.max_lag=", v.maxLag)),
			Sticky:       v.sticky,
			Keys:         [][]byte{[]byte("0123456789abcdef0123456789abcdef")},
			MaxAge:       v.maxLag + margin,
			StoreTimeout: v.patience,
		}
		if len(v.stores) > 0 {
			configs[i].Redis = v.stores[i]
		}
	}
	return configs
}

// mustBeSound fails the test if a read was stale, or a request failed.
func (o outcome) mustBeSound(t *testing.T) {
	t.Helper()
	if stale, failures := o.bad(); stale > 0 || failures > 0 {
		t.Errorf("%s: %d stale reads and %d failed requests", o.name, stale, failures)
	}
}

// Users write, are sent on to the other process, and read: no read is older than what
// they wrote, no request fails, and replicas serve most of the reads.
//
// All variants run at the same time on the same servers, the cookie made by hand among
// them. REPLICATED_FLOWS is how many flows each has, REPLICATED_FLOWS_USERS how many
// users run them.
func TestFlows(t *testing.T) {
	t.Parallel()
	c := startCluster(t, delay)
	store, faulty := replicatedtest.StartRedis(t, replicatedtest.RedisConfig{}), replicatedtest.StartRedis(t, replicatedtest.RedisConfig{})
	way, err := replicatedtest.NewProxy(faulty.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	variants := []variant{
		{name: "cookie", sticky: app.Cookie, visit: web, jar: cookies},
		{name: "header", sticky: app.Header, visit: api, header: true},
		// A machine that is busy with all this may well stop everybody for more than the
		// default of 50 ms, and a store that does not answer counts as one that fails.
		{name: "redis", sticky: app.Store, visit: web, stores: []string{store.Addr(), store.Addr()}, patience: 2 * time.Second},
		{name: "graphql", sticky: app.Cookie, visit: queries, jar: cookies},
		{name: "reordered", sticky: app.Cookie, visit: web, jar: cookies, slots: 3},
		{
			name: "redis-faults", sticky: app.Store, visit: web, flow: hasty, maxLag: time.Second, patience: 250 * time.Millisecond,
			stores: []string{way.Addr(), faulty.Addr()}, beside: storeFaults(faulty, way, time.Second+margin),
		},
		{name: "plain-cookie", sticky: app.PlainCookie, visit: web, jar: cookies},
	}
	outcomes := runAll(t, c, variants, effortOf(t))
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			o := outcomes[v.name]
			o.mustBeSound(t)
			if counted, reads := total(o.Replica)+total(o.Primary), int64(o.tally.reads.count()); counted < reads {
				t.Errorf("the processes have counted %d of %d reads", counted, reads)
			}
			switch v.name {
			case "cookie", "header", "redis", "graphql":
				if o.share() < wanted {
					t.Errorf("replicas served %.1f %% of the reads, want %.0f %%", 100*o.share(), 100*wanted)
				}
			case "redis-faults":
				for _, kind := range []string{"store-load-failed", "store-save-failed", "store-emptied", "held"} {
					if o.Events[kind] == 0 {
						t.Errorf("no event %s: the faults have not been met", kind)
					}
				}
			case "plain-cookie":
				if o.share() > 0.6 {
					t.Errorf("replicas served %.1f %% of the reads: the comparison is not one", 100*o.share())
				}
			}
		})
	}
}

// The flows find stale reads of an application that has nothing around it but a
// session for each request, within seconds: in the page after the form, and in the
// reads that follow.
func TestFlowsFindStaleReads(t *testing.T) {
	t.Parallel()
	v := variant{name: "sessions", sticky: app.Sessions, visit: web, jar: cookies, enough: 10}
	o := runAll(t, startCluster(t, delay), []variant{v}, effort{users: 10, flows: 20})[v.name]
	mustFind(t, o)
}

// The flows whose responses are reordered find what they are for: if the middleware's
// cookies all had one name, a response that comes late would overwrite what a later
// write's response had brought.
func TestReorderedFlowsFindStaleReads(t *testing.T) {
	t.Parallel()
	v := variant{name: "one-cookie", sticky: app.Cookie, visit: web, jar: oneCookieOnly, slots: 3, enough: 3}
	o := runAll(t, startCluster(t, delay), []variant{v}, effort{users: 10, flows: 20})[v.name]
	mustFind(t, o)
}

// A cookie that keeps users on the primary for five seconds is a guess: where replicas
// are six seconds behind, its users read old data. Tokens are none.
func TestFlowsFarBehind(t *testing.T) {
	t.Parallel()
	far := 6 * time.Second
	variants := []variant{
		{name: "cookie", sticky: app.Cookie, visit: web, jar: cookies, maxLag: 2 * far},
		{name: "plain-cookie", sticky: app.PlainCookie, visit: web, jar: cookies, maxLag: 2 * far},
	}
	outcomes := runAll(t, startCluster(t, far), variants, effort{users: 10, flows: 10})
	mustFind(t, outcomes["plain-cookie"])
	outcomes["cookie"].mustBeSound(t)
}

// mustFind fails the test if there were no stale reads, or if there was anything worse.
func mustFind(t *testing.T, o outcome) {
	t.Helper()
	if stale, failures := o.bad(); stale == 0 || failures > 0 {
		t.Errorf("%s: %d stale reads and %d failed requests, want stale reads and no failure", o.name, stale, failures)
	}
}
