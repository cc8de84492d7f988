package replicated

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrReadOnly is returned when a statement that is not a proven read meets a
	// context made by [WithReadOnly], or a read-only transaction that runs on a
	// replica. The statement has not left the process.
	ErrReadOnly = errors.New("replicated: only reads are allowed here")

	// ErrNotFresh is returned when a read asks for newer data than any reachable
	// replica can be shown to have, and no primary answers. See [Config.PrimaryDown].
	ErrNotFresh = errors.New("replicated: no reachable node is known to have data as new as this read is entitled to")

	// ErrNoReplica is returned when no replica is eligible for a read and the
	// primary already serves [Config.PrimaryReadLimit] reads for want of one.
	ErrNoReplica = errors.New("replicated: no replica is eligible and replicated.primary_read_limit is reached")

	// ErrNoPrimary is returned when a statement needs the primary and there is none:
	// nobody takes writes, it can't be told which of several nodes is the primary, or,
	// with static topology, the node listed as such is read-only. What would write has
	// not been sent.
	ErrNoPrimary = errors.New("replicated: no primary is known")

	// ErrOutcomeUnknown is returned when the connection was lost after a statement
	// that may write had been sent, and before its answer arrived. The statement
	// may have taken effect, may not have, or may take effect later; it has been
	// sent once and is not repeated. [driver.ErrBadConn] is never in its chain, so
	// database/sql does not repeat it either.
	ErrOutcomeUnknown = errors.New("replicated: the connection was lost after the statement was sent, its outcome is unknown")
)

var (
	// errConnLost stands for driver.ErrBadConn in chains that must not hold that
	// sentinel: database/sql repeats a call, or closes a healthy primary, wherever
	// errors.Is finds it.
	errConnLost = errors.New("connection lost")

	errClosed = errors.New("replicated: the cluster is closed")
)

// NodeError is a failure of one node: a dial, a lost connection, a refused
// login. It unwraps to what the node's driver reported, never to
// [driver.ErrBadConn]. Errors of statements (syntax, constraints, deadlocks)
// come back as the node's driver made them, unwrapped.
type NodeError struct {
	Node string // the node's name, see [Node.Name]
	Role Role   // what the node was used as
	Op   string // what was tried: "connect", "read rows", …
	Err  error
}

func (e *NodeError) Error() string {
	name := e.Node
	if !strings.HasPrefix(name, e.Role.String()) { // as the names of nodes without an address
		name = e.Role.String() + " " + name
	}
	return fmt.Sprintf("replicated: %s: %s: %v", name, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// nodeError wraps err for the caller, with driver.ErrBadConn taken out of its chain.
func nodeError(n *node, role Role, op string, err error) error {
	var ne *NodeError
	if errors.As(err, &ne) {
		return err
	}
	return &NodeError{Node: n.name, Role: role, Op: op, Err: withoutBadConn(err)}
}

// withoutBadConn returns err, or a cause of our own where err's chain holds
// driver.ErrBadConn.
func withoutBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return errConnLost
	}
	return err
}

// outcomeUnknown reports a statement whose answer was lost.
func outcomeUnknown(n *node, err error) error {
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, nodeError(n, RolePrimary, "wait for the answer", err))
}
