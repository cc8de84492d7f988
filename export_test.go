package replicated

import "time"

// Inside a testing/synctest bubble the clock stands in the year 2000, before this
// process began. The process's own clock is set back, so that moments in a bubble
// lie after never, as everywhere.
func init() { processStart = processStart.Add(-50 * 365 * 24 * time.Hour) }

// The limits that tests hold the driver to.
const (
	MaxDials   = maxDials
	IdleLife   = idleLife
	ProbeEvery = probeEvery
)
