package replicated

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/socket"
)

// settings is a checked Config. It is immutable, its sources' opened connectors
// excepted.
//
// Here zero means off or none, in every field where a Config says that with a
// negative value: the defaults are filled in.
type settings struct {
	Config
	dialect classify.Dialect // AnyMySQL, Postgres or Generic
	sources []*source        // in the order of Config.Nodes: sources[0] is the primary
}

// normalize copies, checks and completes a Config. Nothing is dialled.
func (c Config) normalize() (*settings, error) {
	c.Nodes = slices.Clone(c.Nodes)
	if c.Driver == "" {
		if i := slices.IndexFunc(c.Nodes, func(n Node) bool { return n.DSN != "" }); i >= 0 {
			c.Driver = driverOfText(c.Nodes[i].DSN)
		}
	}
	if err := checkKeys(&c); err != nil {
		return nil, err
	}
	if err := unsupported(&c); err != nil {
		return nil, err
	}
	for _, k := range keys {
		k.fill(&c)
	}
	s := &settings{Config: c, dialect: dialectOfName(c.Driver)}
	for i := range s.Nodes {
		src, err := newSource(&s.Config, i)
		if err != nil {
			return nil, redact(nodeRefused(i, err), s.Nodes[i].DSN)
		}
		s.sources = append(s.sources, src)
		s.Nodes[i].Name, s.Nodes[i].Address, s.Nodes[i].Weight = src.name, src.address, src.weight
	}
	if err := checkNodes(s.Nodes); err != nil {
		return nil, err
	}
	for _, src := range s.sources {
		if s.dialect != classify.Generic {
			break
		}
		d, err := src.dialect()
		if err != nil {
			return nil, err
		}
		s.dialect = d
	}
	if s.Topology == TopologyDiscover && !knowsRoles(s.dialect) {
		return nil, fmt.Errorf("replicated: replicated.topology=discover needs servers that can be asked for their role, and what the driver %q speaks is not known: use static", s.Driver)
	}
	return s, nil
}

// clusterKey tells which cluster this is among all of the process: floors are kept
// per cluster, so that a write through one *sql.DB holds for reads through another.
//
// It is the cluster's name where one is given. Else, where roles are followed, it is
// all addresses: list the same nodes in each DSN, or give a name. With static roles it
// is the address of the primary alone: DSNs of one cluster may list different replicas, and a statement
// may reach another database of the server than the DSN's. Two names of one host
// make two keys, which replicated.cluster can join. One key for two clusters
// would only send reads to the primary without need.
//
// It has no password in it.
func (s *settings) clusterKey() string {
	prefix := s.dialect.String() + "|"
	if s.ClusterName != "" {
		return prefix + "name|" + s.ClusterName
	}
	if s.Topology == TopologyDiscover {
		return prefix + "nodes|" + s.addresses()
	}
	p := s.sources[0]
	switch {
	case p.address != "":
		address := strings.ToLower(p.address)
		if host, port, err := net.SplitHostPort(address); err == nil && (host == "localhost" || host == "::1") {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return prefix + "address|" + address
	case p.text != "":
		sum := sha256.Sum256([]byte(p.text))
		return prefix + "dsn|" + hex.EncodeToString(sum[:12])
	default:
		if v := reflect.ValueOf(p.given); v.Kind() == reflect.Pointer {
			return fmt.Sprintf("%sconnector|%x", prefix, v.Pointer())
		}
		return fmt.Sprintf("%sconnector|#%d", prefix, anonymous.Add(1))
	}
}

// addresses names all nodes, in whatever order they are listed.
func (s *settings) addresses() string {
	var all []string
	for _, src := range s.sources {
		address := src.address
		if address == "" {
			address = "#" + strconv.FormatUint(anonymous.Add(1), 10)
		}
		all = append(all, strings.ToLower(address))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// anonymous numbers clusters that nothing tells from another.
var anonymous atomic.Uint64

// close closes the connectors of registered drivers that we have opened. Those
// that the caller gave stay the caller's.
func (s *settings) close() error {
	var errs []error
	for _, src := range s.sources {
		errs = append(errs, src.close())
	}
	return errors.Join(errs...)
}

// source is how one node is reached: by go-sql-driver/mysql, by lib/pq, by a
// registered driver with a text, or by a connector of the caller.
type source struct {
	name    string
	address string // "" where it is not known
	weight  int    // 1 or more
	zone    string

	timeout time.Duration // bounds the opening of a connection, 0 for none; see connector
	oneTrip bool          // the DSN chooses the driver's one-trip path for arguments
	fenced  bool          // connections opened with readOnly are so by a start-up parameter

	// One of these four is set.
	mysql    *mysql.Config
	postgres *pq.Config
	driver   string // a registered driver, with text and readOnlyText
	given    driver.Connector

	text, readOnlyText string
	grammar            classify.Dialect // of the text; Generic where it is not known

	mu     sync.Mutex
	opened [2]driver.Connector // of driver, by readOnly; opened on first need
}

func newSource(c *Config, i int) (*source, error) {
	n := c.Nodes[i]
	s := &source{name: n.Name, address: n.Address, weight: n.Weight, zone: n.Zone}
	if i > 0 || c.Topology == TopologyDiscover {
		s.timeout = c.ConnectTimeout
	}
	switch {
	case n.Weight < 0:
		return nil, fmt.Errorf("replicated: Weight is %d: it accepts 1 and more, or 0 for 1", n.Weight)
	case n.DSN != "" && n.Connector != nil:
		return nil, errors.New("replicated: a node has a DSN and a Connector: give one of them")
	case n.Connector != nil:
		s.given = n.Connector
	case n.DSN == "":
		return nil, errors.New("replicated: a node has neither a DSN nor a Connector")
	default:
		if err := s.setText(c, n.DSN); err != nil {
			return nil, err
		}
	}
	if s.weight == 0 {
		s.weight = 1
	}
	if s.name == "" {
		s.name = s.address
	}
	if s.name == "" {
		s.name = ordinal(i)
		if c.Topology == TopologyDiscover {
			s.name = "node" + strconv.Itoa(i+1)
		}
	}
	return s, nil
}

// setText takes the node's DSN. A time limit of its own goes before the cluster's.
func (s *source) setText(c *Config, dsn string) error {
	n, err := parseNode(c.Driver, dsn)
	if err != nil {
		return err
	}
	s.text, s.readOnlyText = dsn, dsn
	if n != nil {
		s.text, s.readOnlyText, s.grammar = n.String(), n.readOnly(), n.dialect()
		s.oneTrip = n.flag("interpolateParams") || n.flag("binary_parameters")
		if s.address == "" {
			s.address = n.addresses()[0]
		}
	}
	s.fenced = s.grammar == classify.Postgres
	switch c.Driver {
	case driverMySQL:
		if s.mysql, err = mysql.ParseDSN(s.text); err != nil {
			return err
		}
		if s.mysql.Timeout > 0 {
			s.timeout = s.mysql.Timeout
		}
		s.mysql.Timeout = s.timeout
	case driverPostgres:
		cfg, err := n.(*postgresDSN).config()
		if err != nil {
			return err
		}
		if cfg.ConnectTimeout > 0 {
			s.timeout = cfg.ConnectTimeout
		}
		cfg.ConnectTimeout = s.timeout
		s.oneTrip = cfg.BinaryParameters // by its own reading of the text
		s.postgres = &cfg
	default:
		if ourName(c.Driver) || !slices.Contains(sql.Drivers(), c.Driver) {
			registered := slices.DeleteFunc(sql.Drivers(), ourName)
			return fmt.Errorf("replicated: no driver %q is registered (there are %s): import its package", c.Driver, strings.Join(registered, ", "))
		}
		s.driver = c.Driver
	}
	return nil
}

// dials reports whether the connector of this source dials with the dialer that it
// is given, so that we hold the socket. A network that is not the net package's is
// dialled by a function that the user has registered with the driver.
func (s *source) dials() bool {
	return s.postgres != nil || s.mysql != nil && (isTCP(s.mysql.Net) || s.mysql.Net == "unix")
}

// connector returns what opens one physical connection of the node, with the
// timeout built in where the driver knows one. Where dials is false, the dialer is
// not used and the caller bounds Connect by its context.
//
// readOnly asks for a replica's connection. On PostgreSQL a start-up parameter makes
// it read-only, see fenced. On MySQL it only leaves out the DSN's autocommit: what
// makes the session read-only there is a statement.
//
// The server shows what a connection of our own is for, see ownName.
//
// It may be called from any goroutine. A nil dialer leaves dialling to the driver.
func (s *source) connector(readOnly bool, use purpose, dial *socket.Dialer) (driver.Connector, error) {
	switch {
	case s.given != nil:
		return s.given, nil
	case s.mysql != nil:
		cfg := s.mysql.Clone()
		if readOnly {
			for name := range cfg.Params {
				if sysvar(name) == "autocommit" {
					delete(cfg.Params, name)
				}
			}
		}
		if dial != nil && s.dials() {
			cfg.DialFunc = dial.DialContext
		}
		// The driver prints to standard error whenever a connection is lost, also
		// where that costs nobody anything; its errors reach us all the same.
		cfg.Logger = new(mysql.NopLogger)
		if name := ownName(use); name != "" {
			if cfg.ConnectionAttributes != "" {
				cfg.ConnectionAttributes += ","
			}
			cfg.ConnectionAttributes += "program_name:" + name
		}
		return mysql.NewConnector(cfg)
	case s.postgres != nil:
		cfg := s.postgres.Clone()
		if readOnly {
			for name := range cfg.Runtime {
				if strings.EqualFold(name, readOnlyParam) {
					delete(cfg.Runtime, name)
				}
			}
			cfg.Runtime[readOnlyParam] = "on"
		}
		if name := ownName(use); name != "" {
			cfg.ApplicationName = name
		}
		c, err := pq.NewConnectorConfig(cfg)
		if err != nil {
			return nil, err
		}
		if dial != nil {
			c.Dialer(dial)
		}
		return c, nil
	default:
		return s.registered(readOnly)
	}
}

// ownName is what connections that no user's statement runs on are called on the
// server: application_name on PostgreSQL, program_name among the connection
// attributes of MySQL.
func ownName(use purpose) string {
	switch use {
	case forSampling:
		return "replicated sampler"
	case forCatalog:
		return "replicated catalog"
	case forKill:
		return "replicated kill"
	default:
		return ""
	}
}

// registered returns the connector of a registered driver, one for all connections:
// some drivers start goroutines with each.
func (s *source) registered(readOnly bool) (driver.Connector, error) {
	which, text := 0, s.text
	if readOnly {
		which, text = 1, s.readOnlyText
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened[which] == nil {
		c, err := openConnector(s.driver, text)
		if err != nil {
			return nil, redact(fmt.Errorf("replicated: %s: driver %s: %w", s.name, s.driver, err), text, s.text)
		}
		s.opened[which] = c
	}
	return s.opened[which], nil
}

func (s *source) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for i, c := range s.opened {
		if closer, ok := c.(io.Closer); ok {
			errs = append(errs, closer.Close())
		}
		s.opened[i] = nil
	}
	return errors.Join(errs...)
}

// openConnector does what sql.Open does, and keeps the connector.
func openConnector(name, dsn string) (driver.Connector, error) {
	drv, err := registeredDriver(name, dsn)
	if err != nil {
		return nil, err
	}
	if d, ok := drv.(driver.DriverContext); ok {
		return d.OpenConnector(dsn)
	}
	return textConnector{drv, dsn}, nil
}

// registeredDriver finds a driver by its name. database/sql has no other way to it
// than a DB, which is closed at once: nothing is dialled.
func registeredDriver(name, dsn string) (driver.Driver, error) {
	db, err := sql.Open(name, dsn)
	if err != nil {
		return nil, err
	}
	return db.Driver(), db.Close()
}

// textConnector is the connector of a driver that has none.
type textConnector struct {
	driver driver.Driver
	dsn    string
}

// Connect parses the DSN anew, and the driver may quote it in its error.
func (c textConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	return conn, redact(err, c.dsn)
}

func (c textConnector) Driver() driver.Driver { return c.driver }

// dialect finds out what a node speaks whose driver's name does not tell: by the
// form of its DSN, else by the package of its driver.
func (s *source) dialect() (classify.Dialect, error) {
	if s.grammar != classify.Generic {
		return s.grammar, nil
	}
	var drv driver.Driver
	if s.given != nil {
		drv = s.given.Driver()
	} else {
		var err error
		if drv, err = registeredDriver(s.driver, s.text); err != nil {
			return classify.Generic, redact(fmt.Errorf("replicated: %s: driver %s: %w", s.name, s.driver, err), s.text)
		}
	}
	if drv == nil {
		return classify.Generic, nil
	}
	t := reflect.TypeOf(drv)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return dialectOfName(t.PkgPath() + "." + t.Name()), nil
}

// dialectOfName is the dialect that the name of a driver, or of its package, tells;
// Generic where it tells none. MySQL and MariaDB share drivers: which of them
// answers is known when it has.
func dialectOfName(name string) classify.Dialect {
	name = strings.ToLower(name)
	for _, word := range []string{"mysql", "mariadb"} {
		if strings.Contains(name, word) {
			return classify.AnyMySQL
		}
	}
	for _, word := range []string{"postgres", "pgx"} {
		if strings.Contains(name, word) {
			return classify.Postgres
		}
	}
	word := func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') }
	for _, w := range strings.FieldsFunc(name, word) {
		if w == "pq" || w == "pg" {
			return classify.Postgres
		}
	}
	return classify.Generic
}
