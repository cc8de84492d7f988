package httpsticky

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// EventKind is a kind of [Event].
type EventKind uint8

// The kinds of events.
const (
	// EventTokenRejected: a cookie or header is forged, malformed, too long, of an
	// unknown version, or one of too many. Reads of the request are fresh instead.
	// Many at once: a key was removed too early, or differs between processes.
	EventTokenRejected EventKind = iota + 1
	// EventTokenCoarse: a token with positions would be too long, or the primary
	// could not be asked for its position: the token asks for everything that anybody
	// has committed by the time it is read.
	EventTokenCoarse
	// EventStoreLoadFailed: the store could not be asked. Reads of the request, or
	// with the key, are fresh instead.
	EventStoreLoadFailed
	// EventStoreSaveFailed: the store may not keep the token. The cookie or the
	// header carries it, or the response is held back, which EventHeld tells; for the
	// age of tokens this process reads fresh with the keys.
	EventStoreSaveFailed
	// EventStoreEmptied: the store began anew, or has lost something. Reads that ask
	// it are fresh until tokens of before that would have expired.
	EventStoreEmptied
	// EventLateWrite: a write came after the response's header had gone out, or before
	// the connection was taken over. A cookie can't tell of it: the store or a trailer
	// does, or the response's end is held back, which EventHeld tells.
	EventLateWrite
	// EventWriteInGet: a GET or HEAD request has written. Nothing is wrong with it
	// here; it shows where routing by method would have failed.
	EventWriteInGet
	// EventHeld: nothing could carry a response's token, and it was held back until
	// all replicas had what was written. With Err that was not awaited, or can't be
	// told: a read elsewhere may miss it.
	EventHeld
)

var kindNames = [...]string{
	EventTokenRejected:   "token-rejected",
	EventTokenCoarse:     "token-coarse",
	EventStoreLoadFailed: "store-load-failed",
	EventStoreSaveFailed: "store-save-failed",
	EventStoreEmptied:    "store-emptied",
	EventLateWrite:       "late-write",
	EventWriteInGet:      "write-in-get",
	EventHeld:            "held",
}

// String returns the kind in lower-case words with hyphens.
func (k EventKind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Event tells what happened to tokens in a request. It holds no value of a cookie,
// no key and no path.
type Event struct {
	Kind EventKind

	// Caller is the pattern that http.ServeMux has matched to the request, with its
	// method: "GET /orders/{id}". "GET (unmatched)" where there is none, or none yet.
	Caller string

	// Err is the cause, where there is one.
	Err error
}

// logs limits the log to a line a second of each kind: while a store is down every
// request has something to tell.
type logs struct {
	next [len(kindNames)]atomic.Int64 // when the next line may be written, in Unix nanoseconds
}

func (l *logs) admit(k EventKind, now time.Time) bool {
	next := l.next[k].Load()
	// One that is further away than a second is of before the clock was set back.
	wait := time.Duration(next - now.UnixNano())
	return (wait <= 0 || wait > time.Second) && l.next[k].CompareAndSwap(next, now.Add(time.Second).UnixNano())
}

func (x *exchange) tell(k EventKind, err error) {
	h := x.h
	if h.o.Observe == nil && h.o.Logger == nil {
		return
	}
	e := Event{Kind: k, Caller: x.caller(), Err: err}
	if h.o.Logger != nil && h.logs.admit(k, time.Now()) {
		level := slog.LevelInfo
		switch k {
		case EventStoreLoadFailed, EventStoreSaveFailed, EventStoreEmptied:
			level = slog.LevelWarn
		case EventHeld:
			if err != nil {
				level = slog.LevelWarn
			}
		case EventWriteInGet:
			level = slog.LevelDebug
		}
		h.o.Logger.Log(context.WithoutCancel(x.Context), level, "httpsticky: "+k.String(),
			slog.String("caller", e.Caller), slog.Any("error", err))
	}
	if h.o.Observe != nil {
		h.o.Observe(e)
	}
}
