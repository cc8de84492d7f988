// Package nethttp is a web application of which any number of processes run behind a
// load balancer: its users read what they wrote, all other reads go to replicas.
package nethttp

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/sqlreplicated/replicated/httpsticky"
)

// New returns the application. The key signs cookies: 32 random bytes, the same in all
// processes.
func New(db *sql.DB, key []byte) (http.Handler, error) {
	return httpsticky.Handler(routes(db), httpsticky.Options{
		Databases: []*sql.DB{db},
		Keys:      [][]byte{key},
	})
}

func routes(db *sql.DB) http.Handler {
	a := app{db}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /notes", a.add)
	mux.HandleFunc("GET /notes/{id}", a.show)
	return mux
}

type app struct{ db *sql.DB }

// add answers with a redirect, which the browser follows at once, to whatever process:
// the cookie is in the redirect's header.
func (a app) add(w http.ResponseWriter, r *http.Request) {
	var id int64
	err := a.db.QueryRowContext(r.Context(), "INSERT INTO notes (text) VALUES ($1) RETURNING id", r.FormValue("text")).Scan(&id)
	if err != nil {
		http.Error(w, "not saved", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("/notes/%d", id), http.StatusSeeOther)
}

func (a app) show(w http.ResponseWriter, r *http.Request) {
	var text string
	err := a.db.QueryRowContext(r.Context(), "SELECT text FROM notes WHERE id = $1", r.PathValue("id")).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.NotFound(w, r)
	case err != nil:
		http.Error(w, "not available", http.StatusServiceUnavailable)
	default:
		fmt.Fprint(w, text)
	}
}
