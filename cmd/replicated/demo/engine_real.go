package demo

import (
	"context"
	"database/sql"
	"io"
	"log"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

// realServers are PostgreSQL or MariaDB servers, with their own replication.
type realServers struct {
	cluster *replicatedtest.Cluster
	app     bank
	lag     time.Duration
}

func startReal(ctx context.Context, e replicatedtest.Engine) (servers, error) {
	if err := replicatedtest.Available(e); err != nil {
		return nil, err
	}
	s := &realServers{app: postgresBank()}
	var o replicatedtest.Options
	if e == replicatedtest.MariaDB {
		s.app = mariaBank()
		// It writes each lost connection to stderr, in the middle of a chart. The
		// errors themselves reach the demo.
		if err := mysql.SetLogger(log.New(io.Discard, "", 0)); err != nil {
			return nil, err
		}
		// The bank has a stored function, and its owner is no superuser.
		o.Settings = map[string]string{"log_bin_trust_function_creators": "1"}
	}
	var err error
	s.cluster, err = replicatedtest.StartContext(ctx, e, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *realServers) title() string { return s.cluster.Version() }
func (s *realServers) note() string  { return "" }
func (s *realServers) word() string  { return "by the servers' count" }
func (s *realServers) logs() string  { return "the servers' own statement logs" }
func (s *realServers) bank() bank    { return s.app }
func (s *realServers) close() error  { return s.cluster.Close() }

func (s *realServers) keys() []string { return nil }

func (s *realServers) dsn(keys ...string) string { return s.cluster.DSN(keys...) }

func (s *realServers) shown() string {
	text, _, _ := strings.Cut(s.cluster.DSN(), "?")
	return strings.ReplaceAll(text, replicatedtest.AppPassword, "…")
}

func (s *realServers) separator() string {
	if strings.Contains(s.cluster.DSN(), "?") {
		return "?…&"
	}
	return "?"
}

func (s *realServers) prepare(ctx context.Context, statements []string, lag time.Duration) error {
	nodes := s.cluster.Nodes()
	db, err := sql.Open(s.cluster.DriverName(), nodes[0].DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	if err := s.cluster.WaitCaughtUp(ctx); err != nil {
		return err
	}
	// A replica of MariaDB is delayed by a proxy, and logs in to its source again
	// through it: a dozen round trips, which are not to be delayed too.
	if err := s.delay(handshake); err != nil {
		return err
	}
	for _, text := range []string{"INSERT INTO payments VALUES (0, 0, 0)", "DELETE FROM payments"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	if err := s.cluster.WaitCaughtUp(ctx); err != nil {
		return err
	}
	s.lag = lag
	return s.delay(lag)
}

// handshake is the delay while a replica connects to its source.
const handshake = time.Millisecond

func (s *realServers) delay(d time.Duration) error {
	for _, n := range s.cluster.Nodes()[1:] {
		if err := n.Delay(d); err != nil {
			return err
		}
	}
	return nil
}

func (s *realServers) nodes() []server {
	var list []server
	for _, n := range s.cluster.Nodes() {
		list = append(list, realServer{s, n})
	}
	return list
}

type realServer struct {
	all  *realServers
	node *replicatedtest.Node
}

func (r realServer) bare() (*sql.DB, error) {
	return sql.Open(r.all.cluster.DriverName(), r.node.DSN())
}

func (r realServer) connections() (int, error) { return r.node.Connections() }

func (r realServer) kill() error {
	if r.node.IsReplica() {
		if err := r.node.Delay(handshake); err != nil {
			return err
		}
	}
	return r.node.Kill()
}

// start returns when the server takes connections, and a replica when it has what
// the primary had.
func (r realServer) start() error {
	if err := r.node.Start(); err != nil || !r.node.IsReplica() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.node.WaitCaughtUp(ctx); err != nil {
		return err
	}
	return r.node.Delay(r.all.lag)
}

func (r realServer) watch() func() []string {
	mark := r.node.Mark()
	return func() []string {
		var ran []string
		for _, st := range r.node.StatementsSince(mark) {
			if st.Kind == replicatedtest.Query || st.Kind == replicatedtest.Execute {
				ran = append(ran, st.Text)
			}
		}
		return ran
	}
}
