package httpsticky

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// Rule says what the statements of some requests ask for.
type Rule struct {
	// Pattern is one of http.ServeMux: "GET /reports/", "POST example.com/hooks/{id}".
	// A path that the mux would redirect ("//reports/", "/reports") counts as where it
	// would be redirected to.
	Pattern string

	// With is applied to the request's context: replicated.WithPrimary,
	// replicated.WithReplica (which allows replicas, where the mode is opt-in),
	// replicated.WithReadOnly, replicated.WithFresh, or several of them by [Wishes].
	With func(context.Context) context.Context
}

// Wishes returns a function that applies all of its arguments, in their order.
func Wishes(with ...func(context.Context) context.Context) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context {
		for _, w := range with {
			ctx = w(ctx)
		}
		return ctx
	}
}

// rules are matched by a mux of their own, of which only the patterns are used.
type rules struct {
	mux  *http.ServeMux
	with map[string]func(context.Context) context.Context // by pattern
}

// newRules returns nil where there are none.
func newRules(list []Rule) (*rules, error) {
	if len(list) == 0 {
		return nil, nil
	}
	r := &rules{mux: http.NewServeMux(), with: make(map[string]func(context.Context) context.Context, len(list))}
	for i, rule := range list {
		if rule.With == nil {
			return nil, fmt.Errorf("httpsticky: Options.Rules[%d] (%q): With is nil", i, rule.Pattern)
		}
		if err := r.add(rule); err != nil {
			return nil, fmt.Errorf("httpsticky: Options.Rules[%d]: %w", i, err)
		}
	}
	return r, nil
}

// registeredAt is where in this file the mux has got a pattern.
var registeredAt = regexp.MustCompile(` \(registered at [^)]*\)`)

// add returns what http.ServeMux panics with: the pattern is malformed, or conflicts
// with another one.
func (r *rules) add(rule Rule) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(registeredAt.ReplaceAllString(fmt.Sprint(p), ""))
		}
	}()
	r.mux.HandleFunc(rule.Pattern, func(http.ResponseWriter, *http.Request) {})
	r.with[rule.Pattern] = rule.With
	return nil
}

// apply returns the context with what the request's rule asks for.
func (r *rules) apply(ctx context.Context, req *http.Request) context.Context {
	if r == nil {
		return ctx
	}
	// For a redirect the mux tells the pattern at its end.
	_, pattern := r.mux.Handler(req)
	if with := r.with[pattern]; with != nil {
		return with(ctx)
	}
	return ctx
}
