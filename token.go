package replicated

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sqlreplicated/replicated/internal/evidence"
	"github.com/sqlreplicated/replicated/internal/token"
)

// Token returns what another process, or the same user's next request, needs to
// see what was written in the scope of ctx: by its session and those nested in it,
// or, without a session, by this process. It is opaque, safe in URLs, cookies and
// headers, and versioned: at most 200 bytes on PostgreSQL and MariaDB, and on MySQL
// at most 4 KiB, where a set of transactions that would take more is left out in
// favour of "everything, by the time the token is read". The tokens that ctx came
// with (WithToken) are part of it. It is "" where nothing was written and none came.
//
// It costs one round trip of the primary's sampler at most, for which ctx is
// waited, and none where a sample has been taken since the write.
//
// Tokens are understood by handles on the same cluster. PostgreSQL's servers have
// an identity by which that is known. On MySQL and MariaDB give the cluster a name
// (Config.ClusterName) if tokens of several clusters may meet.
//
// An error says that there is none to be had: the primary does not answer, or no
// tracker works. What was written is then seen elsewhere when replication brings it.
func (c *Cluster) Token(ctx context.Context) (string, error) {
	w := wishesOf(ctx)
	t := entriesOf(w.tokensOf())
	var wrote floor
	if w.session != nil {
		wrote = w.session.floor(c.floors, nil)
	} else {
		wrote = c.floors.last()
	}
	e, err := c.entry(ctx, wrote)
	if err != nil {
		return "", err
	}
	return token.Merge(t, e).String(), nil
}

// entry returns what a token says of writes up to a floor.
func (c *Cluster) entry(ctx context.Context, wrote floor) (token.Token, error) {
	if wrote.Any == never {
		return nil, nil
	}
	q, err := c.sampleAfter(ctx, wrote.Any)
	if err != nil {
		return nil, fmt.Errorf("replicated: no token: %w", err)
	}
	e := token.Entry{Cluster: c.tokenName(q.Lineage), Lineage: q.Lineage, Position: q.Synced}
	if wrote.Async != never {
		e.Position = q.Whole
	}
	e.Position = e.Position.Token()
	return token.Token{e}, nil
}

// coarse returns an entry for whatever has been written so far, which takes no
// question to the primary.
func (c *Cluster) coarse() token.Token {
	lineage := c.fresh.book.Lineage()
	if lineage == "" && c.cfg.ClusterName == "" {
		return token.Token{{Cluster: token.Any}}
	}
	return token.Token{{Cluster: c.tokenName(lineage)}}
}

// TokenOf returns the token of all that was written in the scope of ctx, on whatever
// cluster: by its session and those around it, or, without a session, by this process;
// and of the tokens that ctx came with and its session has adopted. It is "" where
// nothing was written and none came. [Cluster.Token] tells what a token is.
//
// It may ask primaries, for which ctx is waited. With an error the token is of use all
// the same: where a primary could not be asked, it asks for everything that anybody has
// committed by the time it is read, and the error says why.
func TokenOf(ctx context.Context) (string, error) {
	w := wishesOf(ctx)
	t := entriesOf(w.tokensOf())
	var all []*floors
	if w.session != nil {
		all = w.session.met()
	} else {
		all = allFloors()
	}
	var failed error
	for _, f := range all {
		wrote := f.last()
		if w.session != nil {
			wrote = w.session.floor(f, nil)
		}
		if wrote.Any == never {
			continue
		}
		c, open := f.handles.any()
		if c == nil || !open && now()-wrote.Any > moment(c.cfg.MaxLag+c.cfg.MaxBlind) {
			continue // never used, or so long ago that nobody reads from a replica without it
		}
		e := c.coarse()
		if open {
			exact, err := c.entry(ctx, wrote)
			if err == nil {
				e = exact
			}
			failed = errors.Join(failed, err)
		}
		t = token.Merge(t, e)
	}
	return t.String(), failed
}

// Token returns the token of what was written in the session, and in those around
// it, and of what they have adopted: [TokenOf] with their context. The tokens that
// ctx came with are part of it too. A session that is nil has none but those.
func (s *Session) Token(ctx context.Context) (string, error) {
	w := wishesOf(ctx)
	if w.session != s {
		w.session = s
		ctx = withWishes(ctx, w)
	}
	if s == nil {
		return entriesOf(w.tokens).String(), nil
	}
	return TokenOf(ctx)
}

// CoarseToken returns a short token that asks for at least what another one does:
// for everything that anybody has committed by the time it is read. It is for where a
// token with its positions is too long. Of a malformed one it asks for that of every
// cluster, and of none it asks for nothing.
func CoarseToken(text string) string {
	t, err := token.Parse(text)
	if err != nil {
		t = token.Token{{Cluster: token.Any}}
	}
	var coarse token.Token
	for _, e := range t {
		coarse = token.Merge(coarse, token.Token{{Cluster: e.Cluster}})
	}
	return coarse.String()
}

// MergeTokens returns a token that asks for all that the others ask for, in
// whatever order they come. Empty ones ask for nothing. An error says that one of
// them is malformed.
func MergeTokens(tokens ...string) (string, error) {
	var all token.Token
	for _, text := range tokens {
		t, err := token.Parse(text)
		if err != nil {
			return "", err
		}
		all = token.Merge(all, t)
	}
	return all.String(), nil
}

// WithToken makes reads that run with the returned context see what the tokens
// tell of, as made by [Cluster.Token] in whatever process. Tokens of other clusters
// than the one that is read are ignored, and so are empty ones. If the primary
// itself cannot be shown to have what a token tells of (it was lost in a failover,
// or the token is of a branch of history that was given up), the read fails with
// [ErrNotFresh], or, with PrimaryDownStale, is served as if there were no token.
//
// An error says that a token is malformed. The context is of use all the same: its
// reads then see everything that anybody has committed before the call, which
// whatever was written in the token was part of. A token from outside can be
// treated so, or ignored.
func WithToken(ctx context.Context, tokens ...string) (context.Context, error) {
	return withTokens(ctx, tokens, false)
}

// WithTokenOrPrimary is [WithToken] for those who would rather have what there is than
// an error: where the primary answers, and can't be shown to have what a token tells of
// (after a failover it may be lost, or have another position), its reads see
// everything that the primary has committed before the call, with
// [NoticeTokenUnmet]. As long as no acknowledged write was lost, what the token tells
// of is part of that. A primary that is known to be older than the token is still
// answered with [ErrNotFresh].
func WithTokenOrPrimary(ctx context.Context, tokens ...string) (context.Context, error) {
	return withTokens(ctx, tokens, true)
}

func withTokens(ctx context.Context, tokens []string, lenient bool) (context.Context, error) {
	w := wishesOf(ctx)
	w.tokens = w.tokens[:len(w.tokens):len(w.tokens)]
	w.stale = false
	var failed error
	for _, text := range tokens {
		t, err := token.Parse(text)
		if err != nil {
			failed = err
			w.fresh = now()
		}
		for _, e := range t {
			w.tokens = append(w.tokens, &tokenFloor{entry: e, from: now(), lenient: lenient})
		}
	}
	return withWishes(ctx, w), failed
}

// tokenFloor is an entry of a token, and the floor that it has turned out to mean.
// It is shared by the contexts that are derived from one.
type tokenFloor struct {
	entry   token.Entry
	from    moment // when it came
	lenient bool   // where the primary lacks it, what it has will do

	found atomic.Pointer[foundFloor]
}

// foundFloor holds for one epoch of one cluster.
type foundFloor struct {
	cluster *Cluster
	epoch   uint64
	at      moment
}

// tokenName is the cluster's name in tokens.
func (c *Cluster) tokenName(lineage string) token.Cluster {
	switch {
	case c.cfg.ClusterName != "":
		return token.NameOf("name " + c.cfg.ClusterName)
	case lineage != "":
		system, _, _ := strings.Cut(lineage, "/")
		return token.NameOf("system " + system)
	default:
		return token.NameOf("")
	}
}

// tokensAsk returns the floor that tokens mean for this cluster. Where it is not
// known yet, the primary is sampled, for which ctx is waited.
//
// With PrimaryDownStale a token that cannot be honoured asks for nothing, and that
// is told once.
func (c *Cluster) tokensAsk(ctx context.Context, tokens []*tokenFloor) (moment, error) {
	highest := never
	for _, t := range tokens {
		at, err := c.tokenAsks(ctx, t)
		switch {
		case err == nil:
			highest = max(highest, at)
		case errors.Is(err, ErrNotFresh) && c.cfg.PrimaryDown == PrimaryDownStale:
			c.tellUnmet(err)
		default:
			return never, err
		}
	}
	return highest, nil
}

// isOurs tells whether an entry is of this cluster, and not another one's. The system of
// PostgreSQL says so by itself, so that a cluster may be given a name while tokens are
// on their way.
func (c *Cluster) isOurs(e *token.Entry, lineage string) bool {
	if e.Cluster == token.Any || e.Cluster == c.tokenName(lineage) {
		return true
	}
	theirs, _, ok := strings.Cut(e.Lineage, "/")
	ours, _, _ := strings.Cut(lineage, "/")
	return ok && theirs != "" && theirs == ours
}

// tellUnmet tells once that a token is not honoured.
func (c *Cluster) tellUnmet(err error) {
	if !c.fresh.unmet.Swap(true) {
		c.notice(Notice{Kind: NoticeTokenUnmet, Err: err})
	}
}

// newerTimeline tells whether a token's lineage is a later timeline of PostgreSQL than
// the primary's: then that is a primary of former times.
func newerTimeline(tokens, primarys string) bool {
	system, t, ok := strings.Cut(tokens, "/")
	system2, p, ok2 := strings.Cut(primarys, "/")
	if !ok || !ok2 || system != system2 {
		return false
	}
	theirs, err := strconv.ParseUint(t, 10, 32)
	ours, err2 := strconv.ParseUint(p, 10, 32)
	return err == nil && err2 == nil && theirs > ours
}

func (c *Cluster) tokenAsks(ctx context.Context, t *tokenFloor) (moment, error) {
	book := &c.fresh.book
	if f := t.found.Load(); f != nil && f.cluster == c && f.epoch == book.Epoch() {
		return f.at, nil
	}
	if c.fresh.tracking() == trackWindow {
		return t.from, nil // it may have been written just before
	}
	for again := false; ; again = true {
		epoch := book.Epoch()
		known := book.Latest() != never // so that the lineage is
		if known && !c.isOurs(&t.entry, book.Lineage()) {
			return never, nil
		}
		at, ok := t.from, t.entry.Position.IsZero()
		if !ok {
			at, ok = book.Find(t.entry.Position, t.entry.Lineage)
			at-- // the sample itself will do
		}
		if ok {
			t.found.Store(&foundFloor{c, epoch, at})
			return at, nil
		}
		if again && t.lenient && !newerTimeline(t.entry.Lineage, book.Lineage()) {
			c.tellUnmet(nil)
			t.found.Store(&foundFloor{c, epoch, t.from})
			return t.from, nil
		}
		if again {
			return never, fmt.Errorf("%w: the primary does not have what the token tells of: it was lost, or belongs to another history", ErrNotFresh)
		}
		if _, err := c.sampleAfter(ctx, now()); err != nil {
			return never, fmt.Errorf("%w: whether the primary has what the token tells of: %w", ErrNotFresh, err)
		}
	}
}

var errUnmeasured = errors.New("replicated: no tracker works, so that there are no positions")

// sampleAfter returns a sample of the primary that was begun after m, and has one
// taken if there is none.
func (c *Cluster) sampleAfter(ctx context.Context, m moment) (evidence.Sample, error) {
	if err := c.attach(); err != nil { // the sampler may be at rest
		return evidence.Sample{}, err
	}
	defer c.detach()
	failures, _ := c.fresh.failure()
	lacked := false
	for {
		news := c.fresh.listen()
		if q, ok := c.fresh.book.After(m); ok {
			return q, nil
		}
		if c.fresh.tracking() == trackWindow {
			return evidence.Sample{}, errUnmeasured
		}
		if n, err := c.fresh.failure(); n != failures {
			if c.primary() != nil || lacked {
				return evidence.Sample{}, err
			}
			// Nobody is the primary: that is waited for as by any statement.
			lacked = true
			if _, err := c.thePrimary(ctx); err != nil {
				return evidence.Sample{}, err
			}
			failures, _ = c.fresh.failure()
			continue
		}
		c.sampler.refused(floor{Any: m})
		select {
		case <-news:
		case <-ctx.Done():
			return evidence.Sample{}, ctx.Err()
		}
	}
}
