package replicated

// Role is what a node is to the cluster.
type Role uint8

// The roles of a node. The zero value is RoleUnknown.
const (
	RoleUnknown Role = iota
	RolePrimary      // takes the writes
	RoleReplica      // follows the primary and serves reads
)

// String returns "primary", "replica" or "unknown".
func (r Role) String() string {
	switch r {
	case RolePrimary:
		return "primary"
	case RoleReplica:
		return "replica"
	default:
		return "unknown"
	}
}
