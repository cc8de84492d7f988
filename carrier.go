package replicated

import "context"

// Carrier is what a token travels in between processes: the headers of a request,
// the metadata of a call, the payload of a job. [net/http.Header] is one, and so is
// every TextMapCarrier of OpenTelemetry.
type Carrier interface {
	// Get returns the value of a key, "" if there is none.
	Get(key string) string
	// Set sets the value of a key.
	Set(key, value string)
}

// TokenKey is the key under which [Inject] puts a token.
const TokenKey = "replicated-token"

// Inject puts into c what the receiver needs to see what was written in the scope of
// ctx: by its session, or, where it has none, by this process, and what it has been
// told of by tokens. Where there is nothing to see, c is left as it is.
//
// It may ask the primary, for which ctx is waited. With an error c is of use all the
// same: what it carries asks for everything that anybody has committed by the time
// it is read. The error says why it is no more exact.
func Inject(ctx context.Context, c Carrier) error {
	text, err := TokenOf(ctx)
	if text != "" {
		c.Set(TokenKey, text)
	}
	return err
}

// Extract returns a context whose reads see what the sender has put into c with
// [Inject]. Where there is nothing, it is ctx. Errors are those of [WithToken], and
// the context is of use with one. Tokens have no seal: from senders that are not
// trusted, take them as package httpsticky does.
func Extract(ctx context.Context, c Carrier) (context.Context, error) {
	text := c.Get(TokenKey)
	if text == "" {
		return ctx, nil
	}
	return WithToken(ctx, text)
}

// AdoptFrom has the session adopt ([Session.Adopt]) what a callee has put into its
// response with [Inject]: the caller then reads what the callee has written for it.
func (s *Session) AdoptFrom(c Carrier) error {
	return s.Adopt(c.Get(TokenKey))
}
