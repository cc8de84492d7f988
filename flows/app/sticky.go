package app

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sqlreplicated/replicated"
)

// Sticky is what sees to it that a user's requests see what the user wrote by
// earlier ones.
type Sticky string

// What may be around the application.
const (
	// Sessions: nothing across requests. Each has a session, so that it sees its
	// own writes; what an earlier request wrote on another process, it may miss.
	Sessions Sticky = "sessions"
	// PlainCookie: a cookie made by hand keeps the user's reads on the primary for
	// PlainWindow after a request that may have written, going by its verb.
	PlainCookie Sticky = "plain-cookie"
	// Cookie: package httpsticky, by its cookies.
	Cookie Sticky = "cookie"
	// Header: package httpsticky, by a header that programs keep.
	Header Sticky = "header"
	// Store: package httpsticky, by what Redis keeps of the user.
	Store Sticky = "store"
)

// TokenHeader is where programs find the token, and send it.
const TokenHeader = "Replicated-Sticky"

// PlainWindow is how long PlainCookie keeps users on the primary.
const PlainWindow = 5 * time.Second

// inSession gives each request a session.
func inSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, _ := replicated.WithSession(r.Context())
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

const plainName = "last_write_ts"

// plainCookie is what many teams have written by themselves, with its usual faults
// but one: the cookie is set before the handler runs, so that no redirect loses it.
func plainCookie(next http.Handler) http.Handler {
	return inSession(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if c, err := r.Cookie(plainName); err == nil {
			ms, err := strconv.ParseInt(c.Value, 10, 64)
			if err == nil && time.Since(time.UnixMilli(ms)) < PlainWindow {
				ctx = replicated.WithPrimary(ctx)
			}
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.SetCookie(w, &http.Cookie{
				Name: plainName, Value: strconv.FormatInt(time.Now().UnixMilli(), 10),
				Path: "/", MaxAge: int(PlainWindow / time.Second), HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
			})
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	}))
}
