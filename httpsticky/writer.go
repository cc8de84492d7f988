package httpsticky

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// response is the response's writer under the handler's. Its methods are those of
// the types below, of which a variant has what the wrapped writer has.
type response struct {
	w        http.ResponseWriter
	x        *exchange
	gone     bool // the header has gone out, or the connection was taken over
	hijacked bool
	status   int // once the header has gone out; 0: 200
}

// goOut is called before anything that sends the response's header.
func (o *response) goOut() {
	if o.gone {
		return
	}
	o.gone = true
	o.x.giveWithHeader()
}

func (o *response) flush() error {
	o.goOut()
	return http.NewResponseController(o.w).Flush()
}

// hijack gives out what was written when the connection is had, and nobody else has
// it yet: what is sent on it from now on is not made of the response's header.
func (o *response) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return conn, buf, err
	}
	o.gone, o.hijacked = true, true
	o.x.giveLate(false, true)
	return conn, buf, nil
}

// addTrailer sends a trailer with the response, and tells whether it can have one.
func (o *response) addTrailer(name, value string) bool {
	r := o.x.r
	te := o.w.Header().Get("Transfer-Encoding")
	switch {
	case !r.ProtoAtLeast(1, 1), r.Method == http.MethodHead, r.Method == http.MethodConnect,
		o.status != 0 && o.status < 200, o.status == http.StatusNoContent, o.status == http.StatusNotModified,
		o.w.Header().Get("Content-Length") != "", te != "" && te != "chunked": // identity ends with the connection
		return false
	}
	// A small body that is still buffered would get a length, which leaves no room for
	// trailers in HTTP/1.1.
	if err := http.NewResponseController(o.w).Flush(); err != nil {
		return false
	}
	o.w.Header().Set(http.TrailerPrefix+name, value)
	return true
}

// writer is what every variant can do.
type writer response

func (o *writer) Header() http.Header { return o.w.Header() }

func (o *writer) WriteHeader(status int) {
	// An informational response is followed by another one; 101 by something else.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		if !o.gone {
			o.status = status
		}
		(*response)(o).goOut()
	}
	o.w.WriteHeader(status)
}

func (o *writer) Write(p []byte) (int, error) {
	(*response)(o).goOut()
	return o.w.Write(p)
}

// WriteString implements [io.StringWriter].
func (o *writer) WriteString(s string) (int, error) {
	(*response)(o).goOut()
	return io.WriteString(o.w, s)
}

// Unwrap is for [http.ResponseController].
func (o *writer) Unwrap() http.ResponseWriter { return (*below)(o) }

// below is what http.ResponseController finds below a variant. It flushes and hijacks
// with what it finds further down, past wrappers that can't, and no header may go out
// there unseen.
type below response

func (o *below) Header() http.Header               { return o.w.Header() }
func (o *below) WriteHeader(status int)            { (*writer)(o).WriteHeader(status) }
func (o *below) Write(p []byte) (int, error)       { return (*writer)(o).Write(p) }
func (o *below) WriteString(s string) (int, error) { return (*writer)(o).WriteString(s) }
func (o *below) Unwrap() http.ResponseWriter       { return o.w }

func (o *below) FlushError() error {
	if !canFlushBelow(o.w) {
		return http.ErrNotSupported
	}
	return (*response)(o).flush()
}

func (o *below) Hijack() (net.Conn, *bufio.ReadWriter, error) { return (*response)(o).hijack() }

// canFlushBelow tells whether http.ResponseController can flush w.
func canFlushBelow(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// The optional abilities.
type (
	flusher    response
	hijacker   response
	readerFrom response
	pusher     response
	notifier   response
)

// closeNotifier is http.CloseNotifier, which is deprecated, and still asked for.
type closeNotifier interface{ CloseNotify() <-chan bool }

func (o *flusher) Flush()            { _ = (*response)(o).flush() }
func (o *flusher) FlushError() error { return (*response)(o).flush() }

func (o *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return (*response)(o).hijack() }

func (o *readerFrom) ReadFrom(src io.Reader) (int64, error) {
	(*response)(o).goOut()
	return o.w.(io.ReaderFrom).ReadFrom(src)
}

func (o *pusher) Push(target string, opts *http.PushOptions) error {
	return o.w.(http.Pusher).Push(target, opts)
}

func (o *notifier) CloseNotify() <-chan bool { return o.w.(closeNotifier).CloseNotify() }
