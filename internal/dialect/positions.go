package dialect

import (
	"github.com/sqlreplicated/replicated/internal/position"
)

// channel is what a replica has applied of one source's binary log.
type channel struct {
	source  string // server_uuid
	applied position.Position
}

// AppliedFrom returns what the server has applied of the log of the primary whose
// Identity.Server is source. Only file positions are a source's own; Applied
// answers for any other kind.
func (id Identity) AppliedFrom(source string) position.Position {
	for _, c := range id.channels {
		if c.source == source {
			return c.applied
		}
	}
	return id.Applied
}

// NoWritten returns why the server, asked as a primary, has no position Written;
// "" if it has.
func (id Identity) NoWritten() string { return id.noWritten }

// NoApplied returns why the server, asked as a replica of the primary whose
// Identity.Server is source, has no position applied; "" if it has.
func (id Identity) NoApplied(source string) string {
	if id.noApplied == "" && id.AppliedFrom(source).IsZero() {
		return "the server replicates from another source than the primary"
	}
	return id.noApplied
}

// without returns the identity of a server that has no position in any role.
func (id Identity) without(why string) Identity {
	id.Written, id.Inserted, id.Applied, id.channels = position.Position{}, position.Position{}, position.Position{}, nil
	id.NoPosition, id.noWritten, id.noApplied = why, why, why
	return id
}

// ByBeat returns the identity of a server whose history is told by a heartbeat, at
// pos, in place of its own positions and lineage. why tells why it has none; "" with
// the zero Position is one that has not been read.
func (id Identity) ByBeat(pos position.Position, why string) Identity {
	id.Written, id.Inserted, id.Applied, id.channels = pos, position.Position{}, pos, nil
	id.Lineage, id.NoPosition, id.noWritten, id.noApplied = "", why, why, why
	return id
}
