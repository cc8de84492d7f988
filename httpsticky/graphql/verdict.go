package graphql

import "strconv"

// Kind is what a request asks a GraphQL server to run.
type Kind uint8

// Unknown is the zero Kind.
const (
	Unknown      Kind = iota // not known: one of the others, or nothing that a server would run
	Query                    // queries only
	Mutation                 // at least one mutation
	Subscription             // subscriptions only
)

// String returns the name of the kind: "query", "mutation", "subscription" or "unknown".
func (k Kind) String() string {
	switch k {
	case Unknown:
		return "unknown"
	case Query:
		return "query"
	case Mutation:
		return "mutation"
	case Subscription:
		return "subscription"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// KindOf returns the kind of an operation by its keyword, as ASTs have it: "query",
// "mutation", "subscription". Every other text is Unknown.
func KindOf(operation string) Kind {
	switch operation {
	case "query":
		return Query
	case "mutation":
		return Mutation
	case "subscription":
		return Subscription
	}
	return Unknown
}

// Reason says why the kind of a request is [Unknown].
type Reason uint8

// None is the zero Reason.
const (
	None         Reason = iota // the kind is known
	NotGraphQL                 // a method or content type that carries no GraphQL, an upgrade, no body
	Encoded                    // the body is compressed, or in a charset other than UTF-8
	TooLarge                   // more than MaxBody, MaxTokens or the limits of a batch
	Unreadable                 // the body could not be read to its end; Verdict.Err says why
	Malformed                  // JSON, URL, multipart body or document does not parse
	Ambiguous                  // servers may read it differently, see the package comment
	NoOperation                // no document, or one of fragments only
	NotPersisted               // a persisted document that Persisted does not know, or without Persisted
	HookFailed                 // Persisted returned an error, which is Verdict.Err
)

var reasons = [...]string{
	None:         "known",
	NotGraphQL:   "not a GraphQL request",
	Encoded:      "encoded body",
	TooLarge:     "too large",
	Unreadable:   "body not readable",
	Malformed:    "malformed",
	Ambiguous:    "ambiguous",
	NoOperation:  "no operation",
	NotPersisted: "not a known persisted document",
	HookFailed:   "persisted documents not available",
}

// String returns a short text for logs and metrics. It never holds anything of the
// request.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "Reason(" + strconv.Itoa(int(r)) + ")"
}

// Verdict is what is known of a request. The zero Verdict knows nothing.
type Verdict struct {
	Kind Kind
	// Name is the name of the operation that runs. It is empty where the operation
	// has none, where it is not certain which one runs, where those of a batch
	// differ, and for names of more than 64 bytes. It consists of letters, digits and underscores, and is
	// the client's choice, unless only persisted documents are allowed: as a label
	// of metrics its number is without bound.
	Name string
	// Why tells why Kind is Unknown; None for the other kinds.
	Why Reason
	// Err is the error of the body's reader or of Rule.Persisted. The handler meets
	// the reader's error too.
	Err error
}

// String returns the kind and the operation's name: "query GetUser", "mutation"; for
// the unknown, kind and reason: "unknown (too large)".
func (v Verdict) String() string {
	switch {
	case v.Kind == Unknown && v.Why != None:
		return "unknown (" + v.Why.String() + ")"
	case v.Name != "":
		return v.Kind.String() + " " + v.Name
	}
	return v.Kind.String()
}

func unknown(why Reason, err error) Verdict { return Verdict{Why: why, Err: err} }

// and returns the verdict on a request of which both v and w hold: of two operations
// of one batch, or of two readings of one request. A mutation outweighs everything;
// what is not known outweighs what is; a query beside a subscription is something
// that no server is known to take.
func (v Verdict) and(w Verdict) Verdict {
	switch {
	case v.Kind == Mutation || w.Kind == Mutation:
		return Verdict{Kind: Mutation, Name: sameName(v, w)}
	case v.Kind == Unknown:
		return v
	case w.Kind == Unknown:
		return w
	case v.Kind != w.Kind:
		return unknown(Ambiguous, nil)
	}
	return Verdict{Kind: v.Kind, Name: sameName(v, w)}
}

func sameName(v, w Verdict) string {
	if v.Kind == w.Kind && v.Name == w.Name {
		return v.Name
	}
	return ""
}
