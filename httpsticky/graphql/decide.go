package graphql

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

// decision is the state of one request's decision.
type decision struct {
	ctx    context.Context
	rule   Rule
	req    *http.Request
	url    params // what the URL of a POST says beside the body
	tokens budget
}

// decide tells what a request runs. Cheap questions come first: the body is read
// only if nothing else has answered.
func (r Rule) decide(ctx context.Context, req *http.Request) Verdict {
	d := decision{ctx: ctx, rule: r, req: req, tokens: budgetOf(r.maxTokens())}
	if upgrades(req) {
		return unknown(NotGraphQL, nil) // the operations come later, in messages
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, "":
		if hasBody(req) {
			return unknown(Ambiguous, nil) // some servers read it
		}
		p, why := paramsOfURL(req.URL.RawQuery)
		if why != None {
			return unknown(why, nil)
		}
		// GraphQL over HTTP, section "GET", allows only queries here. That is the
		// server's to enforce: what parses as a mutation is one.
		return d.request(p)
	case http.MethodPost, "QUERY":
		return d.posted()
	}
	return unknown(NotGraphQL, nil)
}

// upgrades tells whether a request asks for another protocol. Of HTTP/2 without TLS it
// is the first request all the same, answered by whatever protocol.
func upgrades(req *http.Request) bool {
	for _, to := range req.Header["Upgrade"] {
		if !strings.EqualFold(to, "h2c") {
			return true
		}
	}
	return false
}

func hasBody(req *http.Request) bool {
	return req.Body != nil && req.Body != http.NoBody && req.ContentLength != 0
}

// posted tells what a request with a body runs.
func (d *decision) posted() Verdict {
	if !hasBody(d.req) || d.rule.MaxBody < 0 {
		return unknown(NotGraphQL, nil)
	}
	if d.req.URL.RawQuery != "" {
		// Servers differ in whether they look at the URL of a POST, and which of the
		// two wins.
		var why Reason
		if d.url, why = paramsOfURL(d.req.URL.RawQuery); why != None {
			return unknown(why, nil)
		}
		if d.url.query != "" || len(d.url.ids) > 0 || d.req.URL.Query().Has(keyOperations) {
			return unknown(Ambiguous, nil)
		}
	}
	mediaType, attrs, why := d.contentType()
	if why != None {
		return unknown(why, nil)
	}
	switch {
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return d.read(d.json)
	case mediaType == "application/graphql":
		return d.read(d.document)
	case mediaType == "multipart/form-data" && attrs["boundary"] != "":
		return d.ahead(func(rec recorder) Verdict { return d.upload(rec, attrs["boundary"]) })
	}
	return unknown(NotGraphQL, nil)
}

// contentType returns the media type of the body and its parameters, if the body may
// be plain UTF-8 text.
func (d *decision) contentType() (mediaType string, attrs map[string]string, why Reason) {
	header := d.req.Header
	if len(header["Content-Type"]) > 1 || len(header["Content-Encoding"]) > 1 {
		return "", nil, Ambiguous
	}
	mediaType, attrs, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return "", nil, NotGraphQL
	}
	if !isUTF8(attrs) {
		return "", nil, Encoded
	}
	switch strings.ToLower(header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip", "x-gzip":
		// Perhaps somebody has decoded the body and left the header. A gzip stream
		// cannot be taken for text, see ahead. Of other encodings that is not certain.
	default:
		return "", nil, Encoded
	}
	return mediaType, attrs, None
}

func isUTF8(attrs map[string]string) bool {
	charset := attrs["charset"]
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// gzipMagic is the first byte of a gzip stream (RFC 1952, section 2.3.1). No JSON
// text, document or multipart body begins with it.
const gzipMagic = 0x1f

// ahead has look read the body ahead, and leaves one that reads the same.
func (d *decision) ahead(look func(recorder) Verdict) Verdict {
	b := &body{orig: d.req.Body}
	d.req.Body = b
	rec := recorder{of: b, max: d.rule.maxBody()}
	if d.req.Header.Get("Content-Encoding") != "" {
		if first, _ := rec.begin(); first == gzipMagic {
			return unknown(Encoded, nil)
		}
	}
	return look(rec)
}

// read reads the whole body for one of json and document.
func (d *decision) read(parse func([]byte) Verdict) Verdict {
	if d.req.ContentLength > d.rule.maxBody() {
		return unknown(TooLarge, nil)
	}
	return d.ahead(func(rec recorder) Verdict {
		text, err := rec.all(d.req.ContentLength)
		if err != nil {
			return unread(err)
		}
		return parse(text)
	})
}

func unread(err error) Verdict {
	if errors.Is(err, errTooLarge) {
		return unknown(TooLarge, nil)
	}
	return unknown(Unreadable, err)
}

// document takes a body of application/graphql: the document itself.
func (d *decision) document(text []byte) Verdict {
	if !utf8.Valid(text) {
		return unknown(Malformed, nil)
	}
	return d.request(params{query: string(text)})
}

// json takes a JSON text: a request, or an array of them, a batch.
func (d *decision) json(text []byte) Verdict {
	value, ok := wellFormed(text)
	if !ok {
		return unknown(Malformed, nil)
	}
	if value[0] != '[' {
		return d.object(value)
	}
	whole, n := unknown(NoOperation, nil), 0
	for element := range elements(value) {
		if n == maxBatch {
			return whole.and(unknown(TooLarge, nil))
		}
		v := d.object(element)
		if n > 0 {
			v = whole.and(v)
		}
		whole = v
		n++
	}
	return whole
}

func (d *decision) object(value []byte) Verdict {
	p, why := paramsOfObject(value)
	if why != None {
		return unknown(why, nil)
	}
	return d.request(p)
}

// request tells what one set of parameters runs: the text, if there is one, and
// every document stored under an id that comes with it and is not the text's hash.
func (d *decision) request(p params) Verdict {
	name := p.operationName
	if d.url.operationName != "" && d.url.operationName != name {
		name = "" // which of the two counts depends on the server
	}
	ids := p.ids
	if p.id != "" && (p.query == "" || d.rule.Persisted != nil) {
		p.addID(p.id)
		ids = p.ids
	}
	var v Verdict
	known := false
	if p.query != "" {
		v, known = d.parse(p.query, name), true
	}
	for _, id := range ids {
		if p.query != "" && hashedBy(p.query, id) {
			continue
		}
		w, ok := d.stored(id, name)
		if !ok && p.query != "" && d.rule.Persisted != nil {
			continue // the server does not have it either, and runs the text or nothing
		}
		if known {
			w = v.and(w)
		}
		v, known = w, true
	}
	if !known {
		return unknown(NoOperation, nil)
	}
	return v
}

// stored tells what the document runs that is stored under id; not ok if there is
// none.
func (d *decision) stored(id, name string) (v Verdict, ok bool) {
	if d.rule.Persisted == nil {
		return unknown(NotPersisted, nil), false
	}
	if len(id) > maxID {
		return unknown(TooLarge, nil), true
	}
	document, ok, err := d.rule.Persisted(d.ctx, id)
	switch {
	case err != nil:
		return unknown(HookFailed, err), true
	case !ok:
		return unknown(NotPersisted, nil), false
	}
	return d.parse(document, name), true
}

func (d *decision) parse(document, name string) Verdict {
	doc, why := d.tokens.parse(document)
	if why != None {
		return unknown(why, nil)
	}
	return operation(doc, name)
}
