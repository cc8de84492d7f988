package replicated

import (
	"context"
	"time"
)

// Inside a testing/synctest bubble the clock stands in the year 2000, before this
// process began. The process's own clock is set back, so that moments in a bubble
// lie after never, as everywhere.
func init() { processStart = processStart.Add(-50 * 365 * 24 * time.Hour) }

// The limits that tests hold the driver to.
const (
	MaxDials   = maxDials
	IdleLife   = idleLife
	ProbeEvery = probeEvery

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
