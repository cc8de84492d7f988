package replicated

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

const (
	// catalogEvery is how soon what another process defines is noticed.
	catalogEvery = 30 * time.Second
	// catalogTimeout bounds one reading, connection included.
	catalogTimeout = 10 * time.Second
	// catalogKept is how long what was read last counts while it cannot be read
	// again.
	catalogKept = 5 * time.Minute
	// catalogRetry is the longest pause after a reading that has failed.
	catalogRetry = 10 * time.Second
	// catalogRest is the least pause between readings, and the first after one that
	// has failed. A reading that took long is followed by a longer one, so that a
	// migration of a thousand statements does not have the catalog read as often.
	catalogRest      = 200 * time.Millisecond
	catalogRestTimes = 10
)

// catalog is what a cluster knows of the functions, views and operators that its
// database defines, and the reader that learns it. A function of which nothing is
// known belongs to the primary: what the catalog tells can only add reads that may
// run on replicas, and take away those that touch more than their text shows.
//
// The reader is one goroutine of the cluster's background work. It opens a
// connection to the primary, which has the newest catalog, for each reading, and
// closes it.
type catalog struct {
	cluster *Cluster
	// unread is what is known without a catalog: what the Config says.
	unread  *classify.Definitions
	reading sync.Mutex                // held while it is read, so that each reading knows of the one before
	known   atomic.Pointer[knowledge] // nil: nothing
	wake    chan struct{}
	told    bool // the reader's own: that the catalog cannot be read
}

// knowledge is one reading of the catalog. It counts as long as nothing has been
// redefined through this process since it began.
type knowledge struct {
	definitions *classify.Definitions
	version     string               // of the catalog; "" where it has none
	redefined   uint64               // floors.redefined before the reading
	reshaped    uint64               // … and floors.reshaped
	rows        *classify.SchemaRows // that schema is made of
	digest      [sha256.Size]byte    // of the rows
	schema      *classify.Schema     // with ScopeTable: what is touched besides what texts name
	unsyncs     bool                 // something in the database may turn synchronous_commit off
}

func newCatalog(c *Cluster) *catalog {
	k := &catalog{cluster: c, wake: make(chan struct{}, 1)}
	if len(c.cfg.ReadFunctions)+len(c.cfg.WriteFunctions) > 0 {
		k.unread = classify.NewDefinitions(c.cfg.dialect, nil, c.cfg.ReadFunctions, c.cfg.WriteFunctions)
	}
	return k
}

// definitions returns what is known now. The pointer is the same for as long as
// what is known is.
func (k *catalog) definitions() *classify.Definitions {
	known := k.known.Load()
	if known == nil {
		return k.unread
	}
	if known.redefined != k.cluster.floors.redefined.Load() {
		k.wakeReader() // perhaps another handle of the process has redefined it
		return k.unread
	}
	return known.definitions
}

// redefined takes note that a statement may have changed what the catalog tells.
// It has returned, but may stand in a transaction, the end of which changes it
// again for all others.
func (k *catalog) redefined() {
	k.cluster.floors.redefined.Add(1)
	k.wakeReader()
}

func (k *catalog) wakeReader() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// useful tells whether it makes a difference what the catalog tells.
func (k *catalog) useful() bool {
	return len(k.cluster.nodes) > 1 && k.cluster.cfg.Reads != ReadsOff && dialect.For(k.cluster.dialect()).HasCatalog()
}

// run reads the catalog at once, when woken, and every now and then, until ctx ends.
func (k *catalog) run(ctx context.Context) {
	if !k.useful() {
		return
	}
	defer k.known.Store(nil) // the next life begins with a reading of its own
	var (
		last  time.Time // the end of the last reading
		good  time.Time // … of the last one that has succeeded
		rest  time.Duration
		timer = time.NewTimer(0)
	)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
			if wait := rest - time.Since(last); wait > 0 {
				timer.Reset(wait)
				continue
			}
		case <-timer.C:
		}
		began := time.Now()
		err := k.read(ctx)
		last = time.Now()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			good, rest = last, max(catalogRest, catalogRestTimes*last.Sub(began))
			timer.Reset(catalogEvery)
			continue
		}
		rest = min(max(2*rest, catalogRest), catalogRetry)
		timer.Reset(rest)
		if last.Sub(good) > catalogKept {
			k.known.Store(nil)
		}
		k.failed(err)
	}
}

// read reads the catalog once.
func (k *catalog) read(ctx context.Context) error {
	k.reading.Lock()
	defer k.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	redefined, reshaped := k.cluster.floors.redefined.Load(), k.cluster.floors.reshaped.Load()
	var old knowledge
	if known := k.known.Load(); known != nil {
		old = *known
	}
	read, next, err := k.fetch(ctx, old.version)
	if err != nil {
		return err
	}
	d := old.definitions
	if read != nil {
		cfg := k.cluster.cfg
		d = classify.NewDefinitions(k.cluster.dialect(), read, cfg.ReadFunctions, cfg.WriteFunctions)
		if d.Equal(old.definitions) {
			d = old.definitions // so that no prepared statement is looked at again
		}
	}
	next.definitions, next.redefined, next.reshaped = d, redefined, reshaped
	if next.rows != nil {
		next.digest = digestOf(next.rows)
		if old.schema != nil && next.digest == old.digest && d == old.definitions && redefined == old.redefined && reshaped == old.reshaped {
			next.schema = old.schema // so that writes which are on their way count for what they touch
		} else {
			next.schema = classify.NewSchema(k.cluster.dialect(), next.rows, d)
		}
		next.rows = nil
	}
	k.known.Store(&next)
	return nil
}

func digestOf(rows *classify.SchemaRows) (sum [sha256.Size]byte) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%#v", *rows)
	h.Sum(sum[:0])
	return sum
}

// fetch asks the primary, over a connection of its own, for what has changed since
// the version.
func (k *catalog) fetch(ctx context.Context, since string) (read *classify.Catalog, next knowledge, err error) {
	n, err := k.cluster.thePrimary(ctx)
	if err != nil {
		return nil, next, err
	}
	p, err := n.connect(ctx, RolePrimary, forCatalog)
	if err != nil {
		return nil, next, err
	}
	defer p.close()
	// lib/pq does not heed a context on a server that hangs.
	defer p.abortWhenDone(ctx)()
	p.begin(&progress{}, false, 0)
	read, next.version, err = n.dialect().Catalog(ctx, p.conn, since)
	if err == nil && k.cluster.cfg.Scope == ScopeTable {
		next.rows, err = n.dialect().Relations(ctx, p.conn)
	}
	if err == nil {
		next.unsyncs, err = n.dialect().ChangesSynchronousCommit(ctx, p.conn)
	}
	if err == nil {
		err = ctx.Err()
	}
	return read, next, err
}

// schema returns what the catalog tells of what is touched besides what texts name;
// nil where that is not known, as while this process changes the schema.
func (k *catalog) schema() *classify.Schema {
	known, f := k.known.Load(), k.cluster.floors
	switch {
	case known == nil || known.schema == nil:
		return nil
	case f.reshaping.Load() != 0:
		return nil
	case known.redefined != f.redefined.Load() || known.reshaped != f.reshaped.Load():
		k.wakeReader() // perhaps another handle of the process has changed it
		return nil
	}
	return known.schema
}

// keepsSync tells whether it is known that nothing in the database turns
// synchronous_commit off.
func (k *catalog) keepsSync() bool {
	known := k.known.Load()
	return known != nil && !known.unsyncs && known.redefined == k.cluster.floors.redefined.Load()
}

// failed tells, once, of a catalog that cannot be read though the primary answers.
func (k *catalog) failed(err error) {
	n := k.cluster.primary()
	if n == nil {
		return
	}
	switch n.dialect().Class(err) {
	case dialect.Lost, dialect.Down, dialect.Busy, dialect.Auth:
		return // others tell of that
	}
	if !k.told {
		k.told = true
		k.cluster.notice(Notice{Kind: NoticeCatalogUnread, Node: n.name, Err: nodeError(n, RolePrimary, "read catalog", err)})
	}
}

// reshaping takes note that a statement which may change the schema is about to be
// sent. What other statements touch is not known from then on, until it is over: it
// may have its effect before anybody learns of that.
func (c *Conn) reshaping() {
	c.cluster.floors.reshaped.Add(1)
	if !c.reshapes {
		c.reshapes = true
		c.cluster.floors.reshaping.Add(1)
	}
}

// defined takes note of what a statement, which has returned, may have done to the
// catalog. Inside a transaction it changes it for others when that is over: then
// it counts again.
func (c *Conn) defined(v *classify.Verdict, text string) {
	redefines := classify.Redefines(*v, text)
	c.defines = c.defines || redefines
	if c.reshapes && (classify.Reshapes(*v, text) || v.Effect&(classify.EndsTx|classify.OpensTx) != 0) {
		c.cluster.floors.reshaped.Add(1)
	}
	switch {
	case c.broken || !c.inTx():
		c.definesNoMore()
	case redefines, c.defines && v.Effect&(classify.EndsTx|classify.OpensTx) != 0: // see settle
		c.cluster.catalog.redefined()
	}
}

// definesNoMore: the transaction is over, if there was one.
func (c *Conn) definesNoMore() {
	if c.reshapes {
		c.reshapes = false
		c.cluster.floors.reshaped.Add(1)
		c.cluster.floors.reshaping.Add(-1)
		if c.cluster.cfg.Scope == ScopeTable {
			c.cluster.catalog.wakeReader()
		}
	}
	if c.defines {
		c.defines = false
		c.cluster.catalog.redefined()
	}
}
