// Package chi is a web application of several tenants: what one user of a tenant writes,
// all its users read, in whatever process, and other tenants' reads go to replicas.
package chi

import (
	"database/sql"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/httpsticky"
)

// New returns the application. Its processes share the store (package redisstore).
func New(db *sql.DB, key []byte, store httpsticky.Store) (http.Handler, error) {
	return httpsticky.Handler(routes(db), httpsticky.Options{
		Databases: []*sql.DB{db},
		Keys:      [][]byte{key},
		Store:     store,
		Rules: []httpsticky.Rule{ // in the syntax of http.ServeMux
			{Pattern: "GET /report", With: replicated.WithReadOnly},
			{Pattern: "/admin/", With: replicated.WithPrimary},
		},
	})
}

func routes(db *sql.DB) http.Handler {
	const count = "SELECT count(*) FROM orders WHERE tenant = $1 OR $1 = ''"
	r := chi.NewRouter()
	r.Route("/tenants/{tenant}/orders", func(r chi.Router) {
		r.Use(byTenant) // here, where the parameters of the route are known
		r.Get("/", show(db, count))
		r.Post("/", show(db, "INSERT INTO orders (tenant) VALUES ($1) RETURNING id"))
	})
	r.Get("/admin/orders", show(db, count))
	r.Get("/report", show(db, count))
	return r
}

func byTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(httpsticky.WithKey(r.Context(), "tenant:"+chi.URLParam(r, "tenant"))))
	})
}

func show(db *sql.DB, query string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n int64
		if err := db.QueryRowContext(r.Context(), query, chi.URLParam(r, "tenant")).Scan(&n); err != nil {
			http.Error(w, "not available", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, n)
	}
}
