package flows_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/flows/app"
)

// variant is a way to use the application.
type variant struct {
	name   string
	sticky app.Sticky
	visit  func(*caller) visitor
	flow   // zero: usual
	// jar makes what keeps a user's cookies; nil: nothing does.
	jar func() http.CookieJar
	// header has the token travel in a header, kept by the user.
	header bool
	// stores are the addresses of the store, one for each process; none: no store.
	stores []string
	// patience is how long the store is waited for; 0: the middleware's default.
	patience time.Duration
	maxLag   time.Duration // replicated.max_lag
	// slots is how many notes a flow writes side by side, with the responses
	// reordered; 0: one.
	slots int
	// enough is how many stale reads are enough to stop; 0: it goes on.
	enough int
	// beside, where there is one, runs beside the users until ctx ends, with them. They
	// don't go before it has called done.
	beside func(ctx context.Context, done func()) error
}

func web(c *caller) visitor         { return &browser{c} }
func api(c *caller) visitor         { return &program{c} }
func queries(c *caller) visitor     { return &graphQL{c} }
func cookies() http.CookieJar       { j, _ := cookiejar.New(nil); return j } // there is no error
func oneCookieOnly() http.CookieJar { return oneCookie{cookies()} }

// newUser makes a user of the site. Their names are unlike those of all other variants.
func (v variant) newUser(s *site, t *tally, i int) *user {
	c := &caller{user: fmt.Sprintf("%s-%d", v.name, i), header: v.header}
	c.Timeout = time.Minute
	c.Transport = s
	if v.slots > 1 {
		c.Transport = reordering{s}
	}
	if v.jar != nil {
		c.Jar = v.jar()
	}
	return newUser(v.visit(c), t, v.flow, c.user, max(v.slots, 1))
}

// effort is how many users a variant has, and how many flows they run together.
type effort struct{ users, flows int }

// run has users run flows, until all have been run.
func (v variant) run(test context.Context, s *site, e effort) (outcome, error) {
	o := outcome{name: v.name, tally: &tally{enough: v.enough}}
	people := make([]*user, e.users)
	for i := range people {
		people[i] = v.newUser(s, o.tally, i)
	}
	if len(v.stores) > 0 {
		if err := wholeStore(test, people, v.maxLag+margin); err != nil {
			return o, err
		}
	}
	before, err := s.stats(test)
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithCancel(test)
	defer cancel()
	var besideDone atomic.Bool
	beside := make(chan error, 1)
	if v.beside == nil {
		besideDone.Store(true)
		beside <- nil
	} else {
		go func() {
			beside <- v.beside(ctx, func() { besideDone.Store(true) })
			besideDone.Store(true)
		}()
	}
	var begun atomic.Int64
	var users sync.WaitGroup
	for i, u := range people {
		users.Go(func() {
			sleep(ctx, time.Duration(i)*v.span/time.Duration(e.users)) // not all at once
			for (begun.Add(1) <= int64(e.flows) || !besideDone.Load()) && ctx.Err() == nil && !o.seenEnough() {
				u.run(ctx)
			}
		})
	}
	users.Wait()
	cancel()
	if err := <-beside; err != nil {
		return o, err
	}
	after, err := s.stats(test)
	o.Stats = after.Sub(before)
	return o, err
}

// wholeStore has each user look at the site once, and then waits for as long as
// tokens live: a store that is new may have lost what was written before, and reads
// that ask it are fresh until then.
func wholeStore(ctx context.Context, people []*user, life time.Duration) error {
	for _, u := range people {
		if _, err := u.read(ctx); err != nil {
			return err
		}
	}
	sleep(ctx, life+time.Second)
	return ctx.Err()
}
