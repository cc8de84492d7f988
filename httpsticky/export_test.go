package httpsticky

import (
	"net/http"
	"time"
)

// Sign makes the value of a cookie or header.
func Sign(key []byte, carrier, token string, at time.Time) string {
	return (&signer{keys: [][]byte{key}}).sign(carrier, token, at)
}

// Taken is what was taken in of a request.
type Taken struct {
	Tokens, Cookies []string
	Rejected        error
	Values, Bytes   int
}

// Take takes in what came with a request, by h, which Handler made.
func Take(h http.Handler, r *http.Request, now time.Time) Taken {
	a := h.(*handler).take(r, now)
	return Taken{a.tokens, a.cookies, a.rejected, a.values, a.bytes}
}

// The limits that tests run into.
const (
	MaxToken  = maxToken
	MaxValues = maxValues
	MaxBytes  = maxBytes
	MaxUnsafe = maxUnsafe
)

// Admitted tells which of some moments, one after the other, have a line in the log.
func Admitted(at ...time.Time) (admitted []bool) {
	var l logs
	for _, now := range at {
		admitted = append(admitted, l.admit(EventHeld, now))
	}
	return admitted
}

// Variants returns a writer for each combination of optional interfaces, with
// whether it is to be a Flusher, Hijacker, ReaderFrom, Pusher and CloseNotifier.
func Variants(w http.ResponseWriter) map[[5]bool]http.ResponseWriter {
	all := make(map[[5]bool]http.ResponseWriter)
	for can := range 32 {
		var has [5]bool
		for i, a := range []int{canFlush, canHijack, canReadFrom, canPush, canNotify} {
			has[i] = can&a != 0
		}
		x := &exchange{}
		x.out.x, x.out.w = x, w
		all[has] = x.out.variant(can)
	}
	return all
}
