package replicated

import (
	"context"
	"slices"
	"time"

	"github.com/sqlreplicated/replicated/internal/evidence"
)

// Inside a testing/synctest bubble the clock stands in the year 2000, before this
// process began. The process's own clock is set back, so that moments in a bubble
// lie after never, as everywhere.
func init() { processStart = processStart.Add(-50 * 365 * 24 * time.Hour) }

// The limits that tests hold the driver to.
const (
	MaxDials   = maxDials
	MaxKillers = maxKillers
	IdleLife   = idleLife
	ProbeEvery = slowest

	CatalogEvery   = catalogEvery
	CatalogTimeout = catalogTimeout
)

// KnowsCatalog tells whether the catalog has been read since something was redefined.
func (c *Cluster) KnowsCatalog() bool {
	k := c.catalog.known.Load()
	return k != nil && k.redefined == c.floors.redefined.Load()
}

// ForgetCatalog has the next reading read all.
func (c *Cluster) ForgetCatalog() { c.catalog.known.Store(nil) }

// ReadCatalog has the catalog read now, in place of the clock.
func (c *Cluster) ReadCatalog(ctx context.Context) error { return c.catalog.read(ctx) }

// SchemaReading identifies what is known of what is touched besides what texts name.
func (c *Cluster) SchemaReading() any { return c.catalog.schema() }

// Proof has a proof looked for of all that has been acknowledged by now, or, unless
// whole, of what was durable by then. The function tells whether every replica that
// is not taken out has been proven to have it.
func (c *Cluster) Proof(whole bool) (had func() bool) {
	f := floor{Any: now()}
	if whole {
		f = evidence.All(f.Any)
	}
	c.sampler.refused(f)
	past := func(s *evidence.Server) bool { return s.Proof().Past(f) }
	return func() bool {
		return c.fresh.tracking() == trackWindow || !slices.ContainsFunc(c.nodes[1:], func(n *node) bool {
			return n.up(now()) && !slices.ContainsFunc(n.servers(), past)
		})
	}
}

// ForgetWritesBehind forgets what Wrote has told of outside sessions: it binds the
// reads of the whole process, other tests' too.
func ForgetWritesBehind() { behindUs.at.Store(0) }
