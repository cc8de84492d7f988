package replicated

import (
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// On PostgreSQL a commit that does not wait for the disk (synchronous_commit = off)
// is acknowledged before the position that proves the others has reached it. This
// file tells which connections may have such commits.

// async tells whether what the Conn's primary connection acknowledges may not be
// durable yet, so that only the primary's insert position covers it. Inside
// PostgreSQL any function, and any SET, can turn synchronous_commit off.
func (c *Conn) async() bool {
	if c.cluster.dialect() != classify.Postgres {
		return false
	}
	return c.primary == nil || c.primary.unsynced || c.primary.identity.AsyncCommit || !c.cluster.catalog.keepsSync()
}

// mayUnsync takes note of a text that may turn synchronous_commit off on its
// connection. The name of a setting may be an argument of set_config.
func (c *Conn) mayUnsync(text string) {
	if c.primary != nil && !c.primary.unsynced && c.cluster.dialect() == classify.Postgres {
		c.primary.unsynced = containsFold(text, "synchronous_commit") || containsFold(text, "set_config")
	}
}

// containsFold tells whether text has the lower-case word in it, in any case.
func containsFold(text, word string) bool {
	for {
		i := strings.IndexAny(text, word[:1]+strings.ToUpper(word[:1]))
		if i < 0 || len(text)-i < len(word) {
			return false
		}
		if strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
		text = text[i+1:]
	}
}
