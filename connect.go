package replicated

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
	"github.com/sqlreplicated/replicated/internal/socket"
	"github.com/sqlreplicated/replicated/internal/status"
)

// connect opens one connection when there is a place for its dial.
func (n *node) connect(ctx context.Context, role Role, use purpose) (*physical, error) {
	if err := n.dials.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer n.dials.Release(1)
	return n.open(ctx, role, use)
}

// purpose is what a connection is opened for. The server shows it.
type purpose uint8

const (
	forStatements purpose = iota
	forSampling           // asks for positions, for as long as the cluster is in use
	forCatalog            // reads the catalog once
	forKill               // ends abandoned writes
)

// open opens one connection and learns who answers. The caller has a place for
// the dial.
func (n *node) open(ctx context.Context, role Role, use purpose) (*physical, error) {
	if limit := n.cluster.cfg.ConnectTimeout; limit > 0 && (role == RoleReplica || n.cluster.topology.follows) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	p, err := n.dialOne(ctx, role, use, n.fences(role))
	if err != nil && n.fences(role) && dialect.RefusesStartupParameter(err) {
		n.foundPooler()
		p, err = n.dialOne(ctx, role, use, false)
	}
	if err != nil {
		return nil, err
	}
	n.remember(p)
	n.cluster.topology.heard(n, &p.identity, p.opened)
	if role == RolePrimary && use != forKill { // which runs no statement, and may come when the node is the primary no more
		n.cluster.meet(p)
	}
	return p, nil
}

// fences tells whether connections of the role are opened read-only.
func (n *node) fences(role Role) bool { return role == RoleReplica && !n.behind.Load() }

func (n *node) dialOne(ctx context.Context, role Role, use purpose, fence bool) (*physical, error) {
	p := &physical{node: n, role: role, use: use}
	if n.src.dials() {
		p.dial = &socket.Dialer{Host: &n.host, EveryMember: role == RoleReplica}
	}
	connector, err := n.src.connector(fence, use, p.dial)
	if err != nil {
		return nil, err
	}
	if n.src.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.src.timeout)
		defer cancel()
	}
	n.opens(p, true)
	defer n.opens(p, false)
	// Whoever opens the breaker after this ends the dial, see abort.
	if role == RoleReplica && use == forStatements && n.breaker.current() != BreakerClosed {
		return nil, errNodeOut
	}
	// lib/pq waits for the server's greeting without looking at ctx.
	stop := p.abortWhenDone(ctx)
	conn, err := connector.Connect(ctx)
	if err == nil {
		p.conn = conn
		err = n.introduce(ctx, p, fence)
	}
	if !stop() && err == nil {
		err = ctx.Err() // the abort is under way, and would meet whoever has the connection by then
	}
	if err != nil {
		if p.conn != nil {
			_ = p.conn.Close()
		}
		p.abort(err)
		if gone := callerGone(ctx); gone != nil {
			return nil, fmt.Errorf("%w (%w)", gone, withoutBadConn(err))
		}
		return nil, err
	}
	return p, nil
}

// introduce learns who has answered on a new connection, and fences it.
func (n *node) introduce(ctx context.Context, p *physical, fence bool) error {
	if p.dial != nil {
		p.sock = p.dial.Socket()
		p.grace = n.src.postgres != nil // lib/pq
	} else {
		p.resends = n.dialect().BadConnAfterSend && !isPgx(p.conn)
	}
	p.flags = status.ReaderFor(p.conn)
	p.opened = now()
	id, err := p.ask(ctx)
	if err != nil {
		return err
	}
	p.identity = id
	if p.role == RoleReplica {
		p.server = n.cluster.sighted(p, &id, p.opened)
	}
	n.cluster.learnFlavor(id.Flavor)
	setFence := fence && !n.src.fenced
	if n.cluster.dialect() == classify.Postgres {
		pid, ok := status.BackendPID(p.conn)
		stripped := fence && n.src.fenced && !id.Fenced
		if ok && pid != id.BackendPID || stripped {
			n.foundPooler()
		}
		setFence = setFence && ok
	}
	p.direct = !n.behind.Load()
	if life := n.cluster.cfg.ReplicaMaxLifetime; life > 0 && (p.role == RoleReplica || p.use == forSampling) {
		p.expires = time.Now().Add(life - time.Duration(rand.Int64N(int64(life)/4+1)))
	}
	if p.role == RolePrimary {
		if id.ReadOnly && !n.cluster.topology.follows && p.use != forKill {
			n.cluster.fresh.steppedDown()
			n.reportOnce(&n.readOnly, NoticeReadOnlyPrimary)
		}
		return nil
	}
	// A SET through a pooler would make other applications read-only: it is sent
	// only where it has been seen that there is none.
	if setFence && p.direct {
		if err := n.dialect().Fence(ctx, p.conn, id); err != nil {
			return err
		}
	}
	if id.Serializable {
		return errSerializable
	}
	return nil
}

// isPgx recognises a connection of pgx, also inside a wrapper that shows what it
// wraps. Of drivers for PostgreSQL it is the one whose driver.ErrBadConn is known
// to mean that nothing was sent; any other may be lib/pq in disguise.
func isPgx(conn driver.Conn) bool {
	if w, ok := conn.(interface{ Raw() driver.Conn }); ok {
		return isPgx(w.Raw())
	}
	t := reflect.TypeOf(conn)
	return t.Kind() == reflect.Pointer && strings.HasPrefix(t.Elem().PkgPath(), "github.com/jackc/pgx/")
}

// errSerializable: a standby answers no serializable read, and each would be run
// twice.
var errSerializable = errors.New("the node's default_transaction_isolation is serializable, which a standby refuses")

func (n *node) foundPooler() { n.reportOnce(&n.behind, NoticePooler) }

func (n *node) foundSeveral() { n.reportOnce(&n.multiplexed, NoticeMultiplexed) }

// reportOnce raises a flag and tells of it the first time.
func (n *node) reportOnce(flag *atomic.Bool, kind NoticeKind) {
	if !flag.Swap(true) {
		n.cluster.notice(Notice{Kind: kind, Node: n.name})
	}
}
