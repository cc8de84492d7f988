package graphql

import (
	"context"
	"math"
	"net/http"
	"strings"

	"github.com/sqlreplicated/replicated"
)

const (
	defaultPath      = "/graphql"
	defaultMaxBody   = 1 << 20
	defaultMaxTokens = 15000

	// maxBatch bounds the operations of a batch, and with them the calls of
	// Rule.Persisted that one request can cause.
	maxBatch = 100
	// maxID bounds the hashes and ids that Rule.Persisted is asked for.
	maxID = 1024
)

// Rule says what the context of a GraphQL request is to be, by what the request
// runs. Its With fits httpsticky's Options.With.
//
// The zero Rule is of use: requests to /graphql that are queries keep their context,
// all others run on the primary. A Rule is not changed by its methods, and may be
// used concurrently.
type Rule struct {
	// Path is the path of the GraphQL endpoint, "/graphql" if empty. One that ends
	// in a slash stands for everything below it, too. Other requests keep their
	// context, and their bodies are not read.
	Path string

	// Match, if set, stands in for Path: it tells which requests are GraphQL's. It
	// must not read the body.
	Match func(*http.Request) bool

	// Query derives the context of a request that runs queries only. nil: it stays
	// as it is, and the driver routes statement by statement. Useful values are
	// replicated.WithReplica, where the cluster is opened with reads=opt-in, and
	// replicated.WithReadOnly, alone or around it, once it is known that no resolver
	// of a query writes: with it a write, or a SELECT that is not a proven read,
	// fails with replicated.ErrReadOnly.
	Query func(context.Context) context.Context

	// Mutation derives the context of a request that has a mutation in it. nil:
	// replicated.WithPrimary, so that what the mutation reads to decide what it
	// writes is not behind, nor read from two places.
	Mutation func(context.Context) context.Context

	// Subscription derives the context of a request that runs subscriptions only,
	// which lasts as long as its stream. nil: replicated.WithPrimary. A subscription
	// reads when it is woken by a change that replicas may not have yet: before
	// setting this, let the resolver take replicated.WithFresh for each event. One
	// call here, when the stream begins, is not enough.
	Subscription func(context.Context) context.Context

	// Unknown derives the context of a request of which the kind is not known,
	// malformed requests and WebSocket upgrades among them. nil: replicated.WithPrimary.
	Unknown func(context.Context) context.Context

	// Persisted returns the document that is stored under an id: the sha256Hash of
	// Apollo's persisted queries, or what stands under documentId, doc_id or id.
	// ok is false where there is none. It is called within the request, at most some
	// 400 times for a batch, with ids of at most 1024 bytes as the client sent them,
	// for what came without its text, or with a text that is not the one hashed. nil,
	// !ok and an error all make a request without text Unknown.
	//
	// With automatic persisted queries the server's own cache is the place to ask.
	// With documents that are fixed at build time it is a map.
	Persisted func(ctx context.Context, id string) (document string, ok bool, err error)

	// MaxBody is how many bytes of a body are looked at, 1 MiB if zero. Of an upload
	// only its first part counts. A body that is larger is Unknown; it reaches the
	// handler whole. Negative: no body is read, only URLs.
	MaxBody int64

	// MaxTokens is how many tokens the documents of one request may have, comments
	// counted, 15000 if zero. With more it is Unknown. Negative: MaxBody is the only
	// bound; a megabyte of tokens takes some 100 ms to parse.
	MaxTokens int

	// Then, if set, has the last word: it is given the context as derived and what it
	// was derived from, for naming the statements in events, counting, logging. For
	// instance, so that reports by caller can tell GraphQL operations apart:
	//
	//	func(ctx context.Context, v graphql.Verdict) context.Context {
	//		return replicated.WithCaller(ctx, "graphql "+v.String())
	//	}
	Then func(context.Context, Verdict) context.Context
}

// With returns the context for a request: ctx itself if it is not one of Path or
// Match. It may replace req.Body by one that reads the same, see the package
// comment, and waits for the client to send what has to be looked at.
func (r Rule) With(ctx context.Context, req *http.Request) context.Context {
	if !r.concerns(req) {
		return ctx
	}
	return r.Apply(ctx, r.decide(ctx, req))
}

// Decide tells what a request runs, whatever its path. It may replace req.Body as
// With does.
func (r Rule) Decide(req *http.Request) Verdict { return r.decide(req.Context(), req) }

// Apply derives the context for a verdict. It is for operations that do not come one
// a request, such as those of a WebSocket connection, in a hook of the server that
// sees each operation: Apply(ctx, Verdict{Kind: KindOf("query")}).
func (r Rule) Apply(ctx context.Context, v Verdict) context.Context {
	derive, otherwise := r.Unknown, replicated.WithPrimary
	switch v.Kind {
	case Query:
		derive, otherwise = r.Query, asItIs
	case Mutation:
		derive = r.Mutation
	case Subscription:
		derive = r.Subscription
	}
	if derive == nil {
		derive = otherwise
	}
	ctx = derive(ctx)
	if r.Then != nil {
		ctx = r.Then(ctx, v)
	}
	return ctx
}

func asItIs(ctx context.Context) context.Context { return ctx }

func (r Rule) concerns(req *http.Request) bool {
	if r.Match != nil {
		return r.Match(req)
	}
	path := r.Path
	if path == "" {
		path = defaultPath
	}
	if below, ok := strings.CutSuffix(path, "/"); ok {
		return req.URL.Path == below || strings.HasPrefix(req.URL.Path, path)
	}
	return req.URL.Path == path
}

func (r Rule) maxBody() int64 {
	if r.MaxBody == 0 {
		return defaultMaxBody
	}
	return min(r.MaxBody, math.MaxInt64-1) // one byte more is asked for
}

// maxTokens returns the bound on tokens as the parser takes it, where 0 is none.
func (r Rule) maxTokens() int {
	switch {
	case r.MaxTokens == 0:
		return defaultMaxTokens
	case r.MaxTokens < 0:
		return 0
	}
	return r.MaxTokens
}
