package flows_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// reordering lets the responses of writes that were sent side by side reach the
// client in the opposite of the order in which they came, as a network may where
// each has a connection of its own.
type reordering struct{ http.RoundTripper }

// RoundTrip holds back the response of a request whose context has a line.
func (r reordering) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if l, ok := req.Context().Value(lineKey{}).(*line); ok && req.Response == nil {
		if err != nil {
			l.leave()
		} else {
			l.wait()
		}
	}
	return resp, err
}

type lineKey struct{}

// line is where responses wait for each other. The last to come goes first, and the
// next when the client has taken it in, cookies and all, and says so by next.
type line struct {
	mu       sync.Mutex
	expected int
	waiting  []chan struct{}
}

func withLine(ctx context.Context, l *line) context.Context {
	return context.WithValue(ctx, lineKey{}, l)
}

func (l *line) wait() {
	turn := make(chan struct{})
	l.mu.Lock()
	l.waiting = append(l.waiting, turn)
	if len(l.waiting) == l.expected {
		l.nextLocked()
	}
	l.mu.Unlock()
	<-turn
}

// leave says that a response won't come.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected--
	if len(l.waiting) == l.expected {
		l.nextLocked()
	}
}

func (l *line) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextLocked()
}

func (l *line) nextLocked() {
	if n := len(l.waiting); n > 0 {
		close(l.waiting[n-1])
		l.waiting = l.waiting[:n-1]
		l.expected--
	}
}

// oneCookie is a jar as it would be if the middleware's cookies all had one name: the
// last to come wins.
type oneCookie struct{ http.CookieJar }

func (j oneCookie) SetCookies(u *url.URL, cookies []*http.Cookie) {
	var kept []*http.Cookie
	for _, c := range cookies {
		if i := strings.LastIndexByte(c.Name, '-'); i >= 0 && c.MaxAge >= 0 {
			c.Name = c.Name[:i] + "-aaaaaa"
			kept = append(kept, c)
		}
	}
	j.CookieJar.SetCookies(u, kept)
}
