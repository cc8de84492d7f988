package httpsticky

import (
	"io"
	"net/http"
)

// What a writer may be able to do beyond http.ResponseWriter. Handlers, and other
// middleware, ask for it by type assertion, so that a wrapper may neither lack what
// the wrapped writer has nor pretend to what it has not.
const (
	canFlush = 1 << iota
	canHijack
	canReadFrom
	canPush
	canNotify
)

func abilities(w http.ResponseWriter) (can int) {
	if _, ok := w.(http.Flusher); ok {
		can |= canFlush
	}
	if _, ok := w.(http.Hijacker); ok {
		can |= canHijack
	}
	if _, ok := w.(io.ReaderFrom); ok {
		can |= canReadFrom
	}
	if _, ok := w.(http.Pusher); ok {
		can |= canPush
	}
	if _, ok := w.(closeNotifier); ok {
		can |= canNotify
	}
	return can
}

// variant returns o as a writer with these abilities. Each part is o under another
// type, so that the whole costs one allocation.
func (o *response) variant(can int) http.ResponseWriter {
	w, f, h, r, p, n := (*writer)(o), (*flusher)(o), (*hijacker)(o), (*readerFrom)(o), (*pusher)(o), (*notifier)(o)
	switch can {
	case 0:
		return w
	case canFlush:
		return struct {
			*writer
			*flusher
		}{w, f}
	case canHijack:
		return struct {
			*writer
			*hijacker
		}{w, h}
	case canFlush | canHijack:
		return struct {
			*writer
			*flusher
			*hijacker
		}{w, f, h}
	case canReadFrom:
		return struct {
			*writer
			*readerFrom
		}{w, r}
	case canFlush | canReadFrom:
		return struct {
			*writer
			*flusher
			*readerFrom
		}{w, f, r}
	case canHijack | canReadFrom:
		return struct {
			*writer
			*hijacker
			*readerFrom
		}{w, h, r}
	case canFlush | canHijack | canReadFrom:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
		}{w, f, h, r}
	case canPush:
		return struct {
			*writer
			*pusher
		}{w, p}
	case canFlush | canPush:
		return struct {
			*writer
			*flusher
			*pusher
		}{w, f, p}
	case canHijack | canPush:
		return struct {
			*writer
			*hijacker
			*pusher
		}{w, h, p}
	case canFlush | canHijack | canPush:
		return struct {
			*writer
			*flusher
			*hijacker
			*pusher
		}{w, f, h, p}
	case canReadFrom | canPush:
		return struct {
			*writer
			*readerFrom
			*pusher
		}{w, r, p}
	case canFlush | canReadFrom | canPush:
		return struct {
			*writer
			*flusher
			*readerFrom
			*pusher
		}{w, f, r, p}
	case canHijack | canReadFrom | canPush:
		return struct {
			*writer
			*hijacker
			*readerFrom
			*pusher
		}{w, h, r, p}
	case canFlush | canHijack | canReadFrom | canPush:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
			*pusher
		}{w, f, h, r, p}
	case canNotify:
		return struct {
			*writer
			*notifier
		}{w, n}
	case canFlush | canNotify:
		return struct {
			*writer
			*flusher
			*notifier
		}{w, f, n}
	case canHijack | canNotify:
		return struct {
			*writer
			*hijacker
			*notifier
		}{w, h, n}
	case canFlush | canHijack | canNotify:
		return struct {
			*writer
			*flusher
			*hijacker
			*notifier
		}{w, f, h, n}
	case canReadFrom | canNotify:
		return struct {
			*writer
			*readerFrom
			*notifier
		}{w, r, n}
	case canFlush | canReadFrom | canNotify:
		return struct {
			*writer
			*flusher
			*readerFrom
			*notifier
		}{w, f, r, n}
	case canHijack | canReadFrom | canNotify:
		return struct {
			*writer
			*hijacker
			*readerFrom
			*notifier
		}{w, h, r, n}
	case canFlush | canHijack | canReadFrom | canNotify:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
			*notifier
		}{w, f, h, r, n}
	case canPush | canNotify:
		return struct {
			*writer
			*pusher
			*notifier
		}{w, p, n}
	case canFlush | canPush | canNotify:
		return struct {
			*writer
			*flusher
			*pusher
			*notifier
		}{w, f, p, n}
	case canHijack | canPush | canNotify:
		return struct {
			*writer
			*hijacker
			*pusher
			*notifier
		}{w, h, p, n}
	case canFlush | canHijack | canPush | canNotify:
		return struct {
			*writer
			*flusher
			*hijacker
			*pusher
			*notifier
		}{w, f, h, p, n}
	case canReadFrom | canPush | canNotify:
		return struct {
			*writer
			*readerFrom
			*pusher
			*notifier
		}{w, r, p, n}
	case canFlush | canReadFrom | canPush | canNotify:
		return struct {
			*writer
			*flusher
			*readerFrom
			*pusher
			*notifier
		}{w, f, r, p, n}
	case canHijack | canReadFrom | canPush | canNotify:
		return struct {
			*writer
			*hijacker
			*readerFrom
			*pusher
			*notifier
		}{w, h, r, p, n}
	case canFlush | canHijack | canReadFrom | canPush | canNotify:
		return struct {
			*writer
			*flusher
			*hijacker
			*readerFrom
			*pusher
			*notifier
		}{w, f, h, r, p, n}
	}
	panic("BUG: an ability without a case")
}
