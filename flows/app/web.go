package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// UserHeader tells who asks. It stands for whatever logs users in.
const UserHeader = "X-User"

// routes are the application: what a team writes, and goes on writing as it did.
func routes(n notes) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /notes", n.page)
	mux.HandleFunc("POST /notes", n.submit)
	mux.HandleFunc("GET /api/notes", n.list)
	mux.HandleFunc("PUT /api/notes/{slot}", n.put)
	mux.HandleFunc("GET /graphql", n.graphQL)
	mux.HandleFunc("POST /graphql", n.graphQL)
	return mux
}

func owner(r *http.Request) string { return r.Header.Get(UserHeader) }

// page shows a user's notes, a line each.
func (n notes) page(w http.ResponseWriter, r *http.Request) {
	found, err := n.of(r.Context(), owner(r))
	if err != nil {
		failed(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, note := range found {
		_, _ = fmt.Fprintf(w, "%d %d\n", note.Slot, note.Value)
	}
}

// submit takes a form, and sends the browser on to the page, as forms do.
func (n notes) submit(w http.ResponseWriter, r *http.Request) {
	slot, err1 := strconv.Atoi(r.FormValue("slot"))
	value, err2 := strconv.ParseInt(r.FormValue("value"), 10, 64)
	if err1 != nil || err2 != nil {
		http.Error(w, "slot and value are numbers", http.StatusBadRequest)
		return
	}
	if err := n.set(r.Context(), owner(r), Note{slot, value}); err != nil {
		failed(w, err)
		return
	}
	http.Redirect(w, r, "/notes", http.StatusSeeOther)
}

func (n notes) list(w http.ResponseWriter, r *http.Request) {
	found, err := n.of(r.Context(), owner(r))
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, found)
}

func (n notes) put(w http.ResponseWriter, r *http.Request) {
	var note Note
	if err := json.NewDecoder(r.Body).Decode(&note); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	slot, err := strconv.Atoi(r.PathValue("slot"))
	if err != nil {
		http.Error(w, "the slot is a number", http.StatusBadRequest)
		return
	}
	note.Slot = slot
	if err := n.set(r.Context(), owner(r), note); err != nil {
		failed(w, err)
		return
	}
	answer(w, note)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller has gone, or will see that the text is cut off
}

func failed(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
