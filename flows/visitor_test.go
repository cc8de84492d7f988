package flows_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/sqlreplicated/replicated/flows/app"
)

// visitor is how a user comes to the site: a browser, or a program. It is used by
// several goroutines at once, as a browser with several tabs is.
type visitor interface {
	// write writes the note, and calls acknowledged when it has been. It returns
	// what it was shown in answer, if that was read from the database.
	write(ctx context.Context, note app.Note, acknowledged func()) (shown []app.Note, read bool, err error)
	// read returns the user's notes.
	read(ctx context.Context) ([]app.Note, error)
}

// caller sends the requests of a user.
type caller struct {
	user string
	http.Client

	header bool // the token travels in app.TokenHeader
	token  atomic.Pointer[string]
}

func (c *caller) send(client *http.Client, ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, siteURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set(app.UserHeader, c.user)
	if token := c.token.Load(); token != nil {
		req.Header.Set(app.TokenHeader, *token)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if token := resp.Header.Get(app.TokenHeader); c.header && token != "" {
		c.token.Store(&token)
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", resp.Request.Method, resp.Request.URL.Path, resp.Status, bytes.TrimSpace(text))
	}
	return text, err
}

// browser fills in forms, and follows redirects.
type browser struct{ *caller }

func (b *browser) write(ctx context.Context, note app.Note, acknowledged func()) ([]app.Note, bool, error) {
	client := b.Client
	taken := func() {
		if l, ok := ctx.Value(lineKey{}).(*line); ok {
			l.next()
		}
	}
	redirected := false
	client.CheckRedirect = func(*http.Request, []*http.Request) error { // the jar has the cookies by now
		redirected = true
		acknowledged()
		taken()
		return nil
	}
	form := url.Values{"slot": {fmt.Sprint(note.Slot)}, "value": {fmt.Sprint(note.Value)}}
	text, err := b.send(&client, ctx, http.MethodPost, "/notes", "application/x-www-form-urlencoded", []byte(form.Encode()))
	if !redirected {
		taken()
		err = cmp.Or(err, fmt.Errorf("POST /notes sends nobody on: %q", text))
	}
	if err != nil {
		return nil, false, err
	}
	found, err := notesOfPage(text)
	return found, true, err
}

func (b *browser) read(ctx context.Context) ([]app.Note, error) {
	text, err := b.send(&b.Client, ctx, http.MethodGet, "/notes", "", nil)
	if err != nil {
		return nil, err
	}
	return notesOfPage(text)
}

func notesOfPage(text []byte) ([]app.Note, error) {
	var found []app.Note
	for line := range strings.Lines(string(text)) {
		var note app.Note
		if _, err := fmt.Sscan(line, &note.Slot, &note.Value); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		found = append(found, note)
	}
	return found, nil
}

// program uses the JSON API.
type program struct{ *caller }

func (p *program) write(ctx context.Context, note app.Note, acknowledged func()) ([]app.Note, bool, error) {
	body, err := json.Marshal(note)
	if err != nil {
		return nil, false, err
	}
	_, err = p.send(&p.Client, ctx, http.MethodPut, fmt.Sprint("/api/notes/", note.Slot), "application/json", body)
	if err == nil {
		acknowledged()
	}
	return nil, false, err
}

func (p *program) read(ctx context.Context) ([]app.Note, error) {
	text, err := p.send(&p.Client, ctx, http.MethodGet, "/api/notes", "", nil)
	if err != nil {
		return nil, err
	}
	var found []app.Note
	return found, json.Unmarshal(text, &found)
}

// graphQL uses the GraphQL endpoint, where mutations are POSTs and queries are one or
// the other.
type graphQL struct{ *caller }

func (g *graphQL) ask(ctx context.Context, query, operation string, variables map[string]any, data any) error {
	body, err := json.Marshal(map[string]any{"query": query, "operationName": operation, "variables": variables})
	if err != nil {
		return err
	}
	text, err := g.send(&g.Client, ctx, http.MethodPost, "/graphql", "application/json", body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &struct{ Data any }{data})
}

// graphQLText has both operations, as clients send it: which of them is meant,
// operationName tells, and the word mutation in the text does not.
const graphQLText = `
	query Notes { notes { slot value } }
	mutation Keep($slot: Int!, $value: Int!) { kept: setNote(slot: $slot, value: $value) { value } }`

func (g *graphQL) write(ctx context.Context, note app.Note, acknowledged func()) ([]app.Note, bool, error) {
	var data struct{ Kept app.Note }
	err := g.ask(ctx, graphQLText, "Keep", map[string]any{"slot": note.Slot, "value": note.Value}, &data)
	if err == nil && data.Kept.Value != note.Value {
		err = fmt.Errorf("the mutation answers %v for %v", data.Kept, note)
	}
	if err == nil {
		acknowledged()
	}
	return nil, false, err
}

func (g *graphQL) read(ctx context.Context) ([]app.Note, error) {
	var data struct{ Notes []app.Note }
	if rand.IntN(2) == 0 {
		err := g.ask(ctx, graphQLText, "Notes", nil, &data)
		return data.Notes, err
	}
	query := url.Values{"query": {graphQLText}, "operationName": {"Notes"}}
	text, err := g.send(&g.Client, ctx, http.MethodGet, "/graphql?"+query.Encode(), "", nil)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &struct{ Data any }{&data})
	return data.Notes, err
}
