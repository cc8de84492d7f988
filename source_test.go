package replicated

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/socket"
)

// settingsOf parses and normalizes a DSN.
func settingsOf(t *testing.T, dsn string) *settings {
	t.Helper()
	cfg, err := ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := cfg.normalize()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNormalizeFillsInDefaults(t *testing.T) {
	s, err := Config{Nodes: []Node{{DSN: "u@tcp(db1)/d"}, {DSN: "u@tcp(db2)/d", Name: "second", Weight: 3, Zone: "z"}}}.normalize()
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Driver: "mysql",
		Nodes: []Node{
			{Name: "db1:3306", Address: "db1:3306", DSN: "u@tcp(db1)/d", Weight: 1},
			{Name: "second", Address: "db2:3306", DSN: "u@tcp(db2)/d", Weight: 3, Zone: "z"},
		},
		MaxLag: 5 * time.Second, MaxBlind: time.Minute, HeartbeatTable: "replicated_heartbeat", Sticky: 5 * time.Second,
		ConnectTimeout: 2 * time.Second, BreakerFailures: 3, BreakerOpen: time.Second,
		ReplicaMaxIdle: 8, ReplicaMaxLifetime: 5 * time.Minute, ReplicaMaxIdleTime: time.Minute,
		PrimaryWait: 5 * time.Second,
	}
	if !reflect.DeepEqual(s.Config, want) {
		t.Errorf("got  %+v\nwant %+v", s.Config, want)
	}
	if s.dialect != classify.AnyMySQL {
		t.Errorf("the dialect is %s", s.dialect)
	}
}

func TestNormalizeTurnsNegativeIntoOff(t *testing.T) {
	s, err := Config{
		Nodes: []Node{{DSN: "u@tcp(db1)/d"}}, Consistency: ConsistencyEventual,
		MaxBlind: -1, Sticky: -1, ConnectTimeout: -1, StmtCache: -1, ReplicaMaxIdle: -1, ReplicaMaxLifetime: -1, ReplicaMaxIdleTime: -1,
	}.normalize()
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxBlind != 0 || s.Sticky != 0 || s.ConnectTimeout != 0 || s.StmtCache != 0 || s.ReplicaMaxIdle != 0 || s.ReplicaMaxLifetime != 0 || s.ReplicaMaxIdleTime != 0 {
		t.Errorf("got %+v", s.Config)
	}
}

func TestNormalizeLeavesTheCallersConfigAlone(t *testing.T) {
	cfg := Config{Nodes: []Node{{DSN: "u@tcp(db1)/d"}}}
	s, err := cfg.normalize()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Nodes[0].Name = "changed"
	if s.Nodes[0].Name != "db1:3306" || cfg.Driver != "" {
		t.Errorf("settings %+v, Config %+v", s.Nodes, cfg)
	}
}

func TestNormalizeRefuses(t *testing.T) {
	ok := Node{DSN: "u:s3cr3t@tcp(db1)/d"}
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no nodes", Config{}, "empty host list"},
		{"a node without anything", Config{Nodes: []Node{ok, {Name: "x"}}}, "neither a DSN nor a Connector (in the DSN of the replica1)"},
		{"a DSN and a Connector", Config{Nodes: []Node{{DSN: ok.DSN, Connector: &countingConnector{}}}}, "a DSN and a Connector"},
		{"a negative weight", Config{Nodes: []Node{{DSN: ok.DSN, Weight: -1}}}, "Weight is -1"},
		{"the same name", Config{Nodes: []Node{{DSN: ok.DSN, Name: "n"}, {DSN: "u@tcp(db2)/d", Name: "n"}}}, `same name, "n"`},
		{"the same node", Config{Nodes: []Node{ok, ok}}, "db1:3306 is listed twice"},
		{"two hosts in one node", Config{Nodes: []Node{{DSN: "u:s3cr3t@tcp(db1,db2)/d"}}}, "names 2 hosts, db1:3306, db2:3306"},
		{"a key of ours in a node", Config{Nodes: []Node{{DSN: "host=db1 password=s3cr3t replicated.reads=off"}}}, `"replicated.reads" stands in the DSN of a node`},
		{"a driver that is not registered", Config{Driver: "nowhere", Nodes: []Node{{DSN: "s3cr3t"}}}, `no driver "nowhere" is registered (there are `},
		{"ourselves", Config{Driver: "replicated", Nodes: []Node{{DSN: "x"}}}, "replicated.driver"},
		{"a negative lag", Config{Nodes: []Node{ok}, MaxLag: -1}, "replicated.max_lag"},
		{"a negative count", Config{Nodes: []Node{ok}, BreakerFailures: -1}, "replicated.breaker_failures"},
		{"an unknown mode", Config{Nodes: []Node{ok}, Balance: 9}, "replicated.balance: it accepts p2c or round-robin"},
		{"a name that is none", Config{Nodes: []Node{ok}, ClusterName: "a b"}, "replicated.cluster"},
		{
			"discover where roles can't be asked for", Config{Nodes: []Node{{Connector: &countingConnector{&countingDriver{}}}}, Topology: TopologyDiscover},
			"replicated.topology=discover needs servers that can be asked for their role",
		},
		{"a table that is none", Config{Nodes: []Node{ok}, Tracker: TrackerHeartbeat, HeartbeatTable: "a; b"}, "replicated.heartbeat_table"},
		{"to wait without a tracker", Config{Nodes: []Node{ok}, Wait: 1, Tracker: TrackerOff}, "replicated.wait needs a tracker"},
		{"a statement cache", Config{Nodes: []Node{ok}, StmtCache: 1}, "replicated.stmt_cache is not supported yet"},
		{"nothing that keeps the promise", Config{Nodes: []Node{ok}, Sticky: -1}, "replicated.sticky=0 needs replicated.consistency=eventual or replicated.tracker=position"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.cfg.normalize()
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "replicated: ") {
				t.Errorf("got %q, want %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q shows the password", err)
			}
		})
	}
}

func TestNormalizeAccepts(t *testing.T) {
	ok := []Node{{DSN: "u@tcp(db1)/d"}}
	for name, cfg := range map[string]Config{
		"a heartbeat":                     {Nodes: ok, Tracker: TrackerHeartbeat, HeartbeatTable: "ops.beat"},
		"a heartbeat, and no window":      {Nodes: ok, Tracker: TrackerHeartbeat, Sticky: -1},
		"a wait for proofs":               {Nodes: ok, Wait: time.Second},
		"proofs alone":                    {Nodes: ok, Tracker: TrackerPosition},
		"proofs alone, and no window":     {Nodes: ok, Tracker: TrackerPosition, Sticky: -1},
		"no window, and no promise":       {Nodes: ok, Consistency: ConsistencyEventual, Sticky: -1},
		"the window alone":                {Nodes: ok, Tracker: TrackerOff, Sticky: time.Second},
		"no tracker, and nothing waits":   {Nodes: ok, Tracker: TrackerOff},
		"a wait for proofs, and no other": {Nodes: ok, Tracker: TrackerPosition, Wait: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := cfg.normalize(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownDriverErrorDoesNotOfferOurselves(t *testing.T) {
	_, err := Config{Driver: "nowhere", Nodes: []Node{{DSN: "x"}}}.normalize()
	if err == nil || strings.Contains(err.Error(), DriverNameMySQL) || !strings.Contains(err.Error(), "postgres") {
		t.Errorf("got %v", err)
	}
}

func TestEmptyDSNIsRecognised(t *testing.T) {
	for _, dsn := range []string{"", "  \n"} {
		for _, forced := range []string{"", "mysql", "postgres"} {
			if _, err := parse(dsn, forced); !errors.Is(err, errEmptyDSN) {
				t.Errorf("%q, %q: %v", dsn, forced, err)
			}
		}
	}
}

func TestForcedDialect(t *testing.T) {
	for _, tt := range []struct {
		forced, dsn string
		want        string // the driver, or what the error has in it after "!"
	}{
		{"mysql", "u@tcp(db1,db2)/d", "mysql"},
		{"mysql", "u@tcp(db1)/d?replicated.driver=mysql-x", "mysql-x"},
		{"mysql", "replicated://mysql?primary=u@tcp(db1)%2F", "mysql"},
		{"mysql", "replicated://unheard?primary=x", "unheard"},
		{"mysql", "host=db1", "!mysql-replicated takes a MySQL DSN"},
		{"mysql", "postgres://db1/d", "!mysql-replicated takes a MySQL DSN"},
		{"mysql", "replicated://pgx?primary=x", "!mysql-replicated was opened with replicated.driver=pgx"},
		{"postgres", "host=db1,db2", "postgres"},
		{"postgres", "postgres://db1/d?replicated.driver=pgx", "pgx"},
		{"postgres", "replicated://pgx?primary=x", "pgx"},
		{"postgres", "u:s3cr3t@tcp(db1)/d", "!key=value"},
		{"postgres", "replicated://mysql?primary=u@tcp(db1)%2F", "!postgres-replicated was opened with replicated.driver=mysql"},
	} {
		cfg, err := parse(tt.dsn, tt.forced)
		if message, ok := strings.CutPrefix(tt.want, "!"); ok {
			if err == nil || !strings.Contains(err.Error(), message) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%s: %q: got %v, want %q", tt.forced, tt.dsn, err, message)
			}
			continue
		}
		if err != nil || cfg.Driver != tt.want {
			t.Errorf("%s: %q: got %q (%v), want %q", tt.forced, tt.dsn, cfg.Driver, err, tt.want)
		}
	}
}

func TestMySQLSourceIsParsedPerHost(t *testing.T) {
	s := settingsOf(t, "u:p@tcp([db1:3306,[::1]:3307]:3306)/d?tls=true&interpolateParams=true&parseTime=true&time_zone=%27%2B00%3A00%27&replicated.max_lag=1s")
	for i, want := range []struct{ address, certificate string }{{"db1:3306", "db1"}, {"[::1]:3307", "::1"}} {
		cfg := s.sources[i].mysql
		if cfg.Addr != want.address || cfg.TLS.ServerName != want.certificate {
			t.Errorf("node %d: address %s, certificate of %s", i, cfg.Addr, cfg.TLS.ServerName)
		}
		if !cfg.ParseTime || !reflect.DeepEqual(cfg.Params, map[string]string{"time_zone": "'+00:00'"}) {
			t.Errorf("node %d: parameters %v", i, cfg.Params)
		}
		if !s.sources[i].oneTrip || !s.sources[i].dials() || s.sources[i].fenced {
			t.Errorf("node %d: %+v", i, s.sources[i])
		}
	}
}

func TestAutocommitReachesThePrimaryAlone(t *testing.T) {
	seen := make(chan map[string]string, 1)
	see := mysql.BeforeConnect(func(_ context.Context, cfg *mysql.Config) error {
		seen <- cfg.Params
		return errors.New("seen enough")
	})
	for _, key := range []string{"autocommit", "AutoCommit", "@@session.autocommit"} {
		src := settingsOf(t, "u@tcp(db1)/d?"+key+"=0&sql_mode=ANSI").sources[0]
		if err := src.mysql.Apply(see); err != nil {
			t.Fatal(err)
		}
		for readOnly, want := range map[bool]map[string]string{
			false: {key: "0", "sql_mode": "ANSI"},
			true:  {"sql_mode": "ANSI"},
		} {
			c, err := src.connector(readOnly, forStatements, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Connect(context.Background()); err == nil {
				t.Fatal("connected to nothing")
			}
			if got := <-seen; !reflect.DeepEqual(got, want) {
				t.Errorf("readOnly %v: parameters %v, want %v", readOnly, got, want)
			}
		}
	}
}

func TestConnectTimeoutIsOfReplicasUnlessTheDSNHasOne(t *testing.T) {
	for dsn, want := range map[string][2]time.Duration{
		"u@tcp(db1,db2)/d": {0, 2 * time.Second},
		"u@tcp(db1,db2)/d?replicated.connect_timeout=3s":            {0, 3 * time.Second},
		"u@tcp(db1,db2)/d?replicated.connect_timeout=0":             {0, 0},
		"u@tcp(db1,db2)/d?timeout=9s":                               {9 * time.Second, 9 * time.Second},
		"host=db1,db2":                                              {0, 2 * time.Second},
		"host=db1,db2 connect_timeout=9":                            {9 * time.Second, 9 * time.Second},
		"host=db1,db2 replicated.connect_timeout=1s sslmode=prefer": {0, time.Second},
	} {
		s := settingsOf(t, dsn)
		for i, src := range s.sources {
			var native time.Duration
			if src.mysql != nil {
				native = src.mysql.Timeout
			} else {
				native = src.postgres.ConnectTimeout
			}
			if src.timeout != want[i] || native != want[i] {
				t.Errorf("%s: node %d: %v, the driver has %v, want %v", dsn, i, src.timeout, native, want[i])
			}
		}
	}
}

func TestDialsOnlyNetworksOfItsOwn(t *testing.T) {
	for dsn, want := range map[string]bool{
		"u@tcp(db1)/d": true, "u@tcp6([::1])/d": true, "u@unix(/s)/d": true, "u@cloudsql(a:b:c)/d": false,
		"host=db1": true, "host=/run/pg": true, "replicated://source-plain?primary=x": false,
	} {
		if got := settingsOf(t, dsn).sources[0].dials(); got != want {
			t.Errorf("%s: %v", dsn, got)
		}
	}
}

func TestPostgresSourceIgnoresHostsOfTheEnvironment(t *testing.T) {
	t.Setenv("PGHOST", "elsewhere,nowhere")
	t.Setenv("PGPORT", "9999,9998")
	t.Setenv("PGTARGETSESSIONATTRS", "standby")
	t.Setenv("PGLOADBALANCEHOSTS", "random")
	t.Setenv("PGUSER", "env-user")
	t.Setenv("PGPASSWORD", "env-password")
	t.Setenv("PGSSLMODE", "disable")
	s := settingsOf(t, "host=db1,/run/pg port=,6432 dbname=shop search_path=a replicated.reads=off")
	for i, want := range []struct {
		host string
		port uint16
	}{{"db1", 5432}, {"/run/pg", 6432}} {
		cfg := s.sources[i].postgres
		if cfg.Host != want.host || cfg.Port != want.port || cfg.Hostaddr.IsValid() || cfg.Multi != nil {
			t.Errorf("node %d: %s, %s, port %d, others %v", i, cfg.Host, cfg.Hostaddr, cfg.Port, cfg.Multi)
		}
		if cfg.TargetSessionAttrs != pq.TargetSessionAttrsAny || cfg.LoadBalanceHosts != pq.LoadBalanceHostsDisable {
			t.Errorf("node %d: %s, %s", i, cfg.TargetSessionAttrs, cfg.LoadBalanceHosts)
		}
		if cfg.User != "env-user" || cfg.Password != "env-password" || cfg.SSLMode != pq.SSLModeDisable || cfg.Database != "shop" {
			t.Errorf("node %d: %s, sslmode %s, dbname %s", i, cfg.User, cfg.SSLMode, cfg.Database)
		}
		if !reflect.DeepEqual(cfg.Runtime, map[string]string{"search_path": "a"}) {
			t.Errorf("node %d: parameters %v", i, cfg.Runtime)
		}
	}
}

func TestPostgresSourceAddress(t *testing.T) {
	t.Setenv("PGHOSTADDR", "10.9.9.9")
	s := settingsOf(t, "host=db1,db2,/run/pg hostaddr=10.0.0.1,, binary_parameters=yes")
	for i, want := range []struct {
		addr   string
		socket bool
	}{{addr: "10.0.0.1"}, {}, {socket: true}} {
		cfg := s.sources[i].postgres
		got := ""
		if cfg.Hostaddr.IsValid() {
			got = cfg.Hostaddr.String()
		}
		// PGHOSTADDR makes the socket look like an address to lib/pq, which would ask for TLS.
		if withoutTLS := cfg.SSLMode == pq.SSLModeDisable; got != want.addr || withoutTLS != want.socket {
			t.Errorf("node %d: address %q, sslmode %q", i, got, cfg.SSLMode)
		}
		if !s.sources[i].oneTrip || !s.sources[i].fenced {
			t.Errorf("node %d: %+v", i, s.sources[i])
		}
	}
}

func TestPostgresSourceIgnoresHostsOfAService(t *testing.T) {
	file := filepath.Join(t.TempDir(), "service.conf")
	if err := os.WriteFile(file, []byte("[app]\nhost=elsewhere\nport=9999\nuser=service-user\ntarget_session_attrs=standby\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", file)
	cfg := settingsOf(t, "service=app host=db1").sources[0].postgres
	if cfg.Host != "db1" || cfg.Port != 5432 || cfg.TargetSessionAttrs != pq.TargetSessionAttrsAny || cfg.User != "service-user" {
		t.Errorf("%s:%d, %s, user %s", cfg.Host, cfg.Port, cfg.TargetSessionAttrs, cfg.User)
	}
}

func TestListInTheEnvironmentIsNamed(t *testing.T) {
	t.Setenv("PGHOSTADDR", "10.0.0.1,10.0.0.2")
	if _, err := ParseDSN("host=db1"); err == nil || !strings.Contains(err.Error(), "PGHOSTADDR") {
		t.Errorf("got %v", err)
	}
}

// startup dials with the connector and returns the parameters that the server is
// sent when a connection opens. The server then hangs up.
func startup(t *testing.T, c driver.Connector, l net.Listener) map[string]string {
	t.Helper()
	got := make(chan map[string]string, 1)
	go func() {
		defer close(got)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		head := make([]byte, 8) // length, protocol
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head)-8)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		words := strings.Split(strings.TrimRight(string(body), "\x00"), "\x00")
		params := make(map[string]string)
		for i := 0; i+1 < len(words); i += 2 {
			params[words[i]] = words[i+1]
		}
		got <- params
	}()
	if _, err := c.Connect(context.Background()); err == nil {
		t.Fatal("connected to nothing")
	}
	return <-got
}

func TestPostgresFenceIsAStartUpParameter(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := settingsOf(t, "postgres://u:p@"+l.Addr().String()+"/d?sslmode=disable&search_path=a&Default_Transaction_Read_Only=off&replicated.max_lag=1s")
	for readOnly, want := range map[bool]string{true: "on", false: ""} {
		dialer := new(socket.Dialer)
		c, err := s.sources[0].connector(readOnly, forStatements, dialer)
		if err != nil {
			t.Fatal(err)
		}
		params := startup(t, c, l)
		if dialer.Socket() == nil {
			t.Error("the dialer was not used")
		}
		dialer.Abort(nil)
		if got := params["default_transaction_read_only"]; got != want {
			t.Errorf("readOnly %v: default_transaction_read_only is %q", readOnly, got)
		}
		_, other := params["Default_Transaction_Read_Only"]
		if other == readOnly {
			t.Errorf("readOnly %v: the DSN's own setting was sent: %v", readOnly, other)
		}
		if params["search_path"] != "a" || params["database"] != "d" {
			t.Errorf("parameters %v", params)
		}
		for name := range params {
			if isOurs(name) {
				t.Errorf("the server gets %s", name)
			}
		}
	}
}

func TestMySQLDialsWithTheDialer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	dialer := new(socket.Dialer)
	defer dialer.Abort(nil)
	c, err := settingsOf(t, "u@tcp("+l.Addr().String()+")/d").sources[0].connector(false, forStatements, dialer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Connect(context.Background()); err == nil {
		t.Fatal("connected to nothing")
	}
	if dialer.Socket() == nil {
		t.Error("the dialer was not used")
	}
}

// plainDriver has no OpenConnector, and remembers what it was opened with.
type plainDriver struct {
	mu     sync.Mutex
	opened []string
}

func (d *plainDriver) Open(dsn string) (driver.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, dsn)
	return nil, errors.New("no server")
}

// countingDriver has connectors that want to be closed.
type countingDriver struct{ made, closed atomic.Int32 }

func (d *countingDriver) Open(string) (driver.Conn, error) { return nil, errors.New("not used") }

func (d *countingDriver) OpenConnector(dsn string) (driver.Connector, error) {
	if strings.Contains(dsn, "bad") {
		return nil, errors.New("cannot parse " + dsn)
	}
	d.made.Add(1)
	return &countingConnector{d}, nil
}

type countingConnector struct{ d *countingDriver }

func (c *countingConnector) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("no server")
}

func (c *countingConnector) Driver() driver.Driver {
	if c.d == nil {
		return nil
	}
	return c.d
}
func (c *countingConnector) Close() error { c.d.closed.Add(1); return nil }

var (
	sourcePlain    = new(plainDriver)
	sourcePG       = new(plainDriver)
	sourceCounting = new(countingDriver)
)

func init() {
	sql.Register("source-plain", sourcePlain)
	sql.Register("source-pg", sourcePG)
	sql.Register("source-counting", sourceCounting)
}

func TestRegisteredDriverGetsTextPerNode(t *testing.T) {
	for _, tt := range []struct{ dsn, primary, replica string }{
		{
			dsn:     "postgres://u:p@db1,db2/d?x=1&replicated.driver=source-pg&replicated.reads=auto",
			primary: "postgres://u:p@db1:5432/d?x=1",
			replica: "postgres://u:p@db2:5432/d?x=1&default_transaction_read_only=on",
		},
		{
			dsn:     "host=db1,db2 password='a b' replicated.driver=source-pg",
			primary: "host=db1 port=5432 password='a b'",
			replica: "host=db2 port=5432 password='a b' default_transaction_read_only=on",
		},
	} {
		s := settingsOf(t, tt.dsn)
		if s.dialect != classify.Postgres || !s.sources[0].fenced || s.sources[0].dials() {
			t.Errorf("%s: %s, %+v", tt.dsn, s.dialect, s.sources[0])
		}
		sourcePG.opened = nil
		for i, readOnly := range []bool{false, true} {
			c, err := s.sources[i].connector(readOnly, forStatements, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Connect(context.Background())
		}
		if want := []string{tt.primary, tt.replica}; !reflect.DeepEqual(sourcePG.opened, want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.dsn, sourcePG.opened, want)
		}
	}
}

func TestDialectOfUnknownDriverIsThatOfItsDSN(t *testing.T) {
	for dsn, want := range map[string]classify.Dialect{
		"host=db1 replicated.driver=source-plain":                                 classify.Postgres,
		"postgres://db1/d?replicated.driver=source-plain":                         classify.Postgres,
		"u@tcp(db1)/d?replicated.driver=source-plain":                             classify.AnyMySQL,
		"replicated://source-plain?primary=host%3Ddb1":                            classify.Postgres,
		"replicated://source-plain?primary=u@unix(%2Fs)%2Fd":                      classify.AnyMySQL,
		"replicated://source-plain?primary=server%3Dh;user%20id%3Du;password%3Dp": classify.Generic,
		"replicated://source-plain?primary=data(1)%2Fapp.db":                      classify.Generic,
	} {
		s := settingsOf(t, dsn)
		if s.dialect != want || s.sources[0].fenced != (want == classify.Postgres) {
			t.Errorf("%s: %s, fenced %v", dsn, s.dialect, s.sources[0].fenced)
		}
	}
}

func TestRegisteredDriverOfUnknownDialectGetsItsDSNAsItIs(t *testing.T) {
	s := settingsOf(t, "replicated://source-plain?primary=file%3Aa.db&replica=file%3Ab.db")
	if s.dialect != classify.Generic || s.sources[1].fenced || s.sources[0].name != "primary" || s.sources[1].name != "replica1" {
		t.Errorf("%s, %+v", s.dialect, s.Nodes)
	}
	sourcePlain.opened = nil
	c, err := s.sources[1].connector(true, forStatements, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Connect(context.Background())
	if want := []string{"file:b.db"}; !reflect.DeepEqual(sourcePlain.opened, want) {
		t.Errorf("opened %q", sourcePlain.opened)
	}
}

func TestRegisteredConnectorsAreKeptAndClosed(t *testing.T) {
	sourceCounting.made.Store(0)
	sourceCounting.closed.Store(0)
	s := settingsOf(t, "replicated://source-counting?primary=a&replica=b")
	if made, closed := sourceCounting.made.Load(), sourceCounting.closed.Load(); made != closed {
		t.Errorf("before the first use %d were made and %d closed", made, closed)
	}
	first, err := s.sources[1].connector(true, forStatements, nil)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := s.sources[1].connector(true, forStatements, nil); second != first {
		t.Error("a second connection has a connector of its own")
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if made, closed := sourceCounting.made.Load(), sourceCounting.closed.Load(); made != closed {
		t.Errorf("%d were made and %d closed", made, closed)
	}
	if again, err := s.sources[1].connector(true, forStatements, nil); err != nil || again == first {
		t.Errorf("after close: %v", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestRegisteredDriverErrorShowsNoPassword(t *testing.T) {
	s, err := Config{Driver: "source-counting", Nodes: []Node{{DSN: "bad://u:s3cr3t@h"}}}.normalize()
	if err == nil {
		_, err = s.sources[0].connector(false, forStatements, nil)
	}
	if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "source-counting") {
		t.Errorf("got %v", err)
	}
}

func TestConnectorOfTheCaller(t *testing.T) {
	d := new(countingDriver)
	given := &countingConnector{d}
	s, err := Config{Nodes: []Node{{Connector: given}, {Name: "second", Connector: &countingConnector{d}}}}.normalize()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.sources[0].connector(true, forStatements, new(socket.Dialer)); err != nil || c != driver.Connector(given) {
		t.Errorf("got %v, %v", c, err)
	}
	if s.dialect != classify.Generic || s.sources[0].name != "primary" || s.sources[1].name != "second" || s.sources[0].dials() || s.sources[0].fenced {
		t.Errorf("%s, %+v", s.dialect, s.Nodes)
	}
	if err := s.close(); err != nil || d.closed.Load() != 0 {
		t.Errorf("closed %d times (%v)", d.closed.Load(), err)
	}
}

func TestDialectOfConnector(t *testing.T) {
	my, err := mysql.NewConnector(mysql.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	pg, err := pq.NewConnectorConfig(pq.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		driver    string
		connector driver.Connector
		want      classify.Dialect
	}{
		{"", my, classify.AnyMySQL},
		{"", pg, classify.Postgres},
		{"", &countingConnector{}, classify.Generic}, // whose Driver is nil
		{"postgres", &countingConnector{}, classify.Postgres},
		{"mysql", &countingConnector{}, classify.AnyMySQL},
	} {
		s, err := Config{Driver: tt.driver, Nodes: []Node{{Connector: tt.connector}}}.normalize()
		if err != nil {
			t.Fatal(err)
		}
		if s.dialect != tt.want {
			t.Errorf("%q, %T: %s, want %s", tt.driver, tt.connector, s.dialect, tt.want)
		}
	}
}

func TestDialectOfName(t *testing.T) {
	for name, want := range map[string]classify.Dialect{
		"mysql": classify.AnyMySQL, "MariaDB": classify.AnyMySQL, "nrmysql": classify.AnyMySQL, "cloudsql-mysql": classify.AnyMySQL,
		"postgres": classify.Postgres, "pgx": classify.Postgres, "pgx/v5": classify.Postgres, "pq": classify.Postgres, "traced-pq": classify.Postgres,
		"github.com/lib/pq.Driver": classify.Postgres, "github.com/jackc/pgx/v5/stdlib.Driver": classify.Postgres,
		"sqlite": classify.Generic, "sqlmock": classify.Generic, "upqueue": classify.Generic, "": classify.Generic,
	} {
		if got := dialectOfName(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestClusterKey(t *testing.T) {
	key := func(dsn string) string { return settingsOf(t, dsn).clusterKey() }
	same := func(a, b string) {
		t.Helper()
		if key(a) != key(b) {
			t.Errorf("two clusters: %s and %s", key(a), key(b))
		}
	}
	other := func(a, b string) {
		t.Helper()
		if key(a) == key(b) {
			t.Errorf("one cluster: %s", key(a))
		}
	}
	same("u@tcp(db1,db2,db3)/a", "v:p@tcp(DB1:3306,db3)/b?parseTime=true")
	same("host=db1,db2", "postgres://u:p@db1,db3/d?sslmode=disable")
	same("host=localhost", "host=127.0.0.1")
	same("host=db1 replicated.cluster=c", "host=db2 replicated.cluster=c")
	same("replicated://source-plain?primary=x&replica=y", "replicated://source-plain?primary=x&replica=z")
	other("u@tcp(db1,db2)/a", "u@tcp(db2,db1)/a")
	other("u@tcp(db1)/a", "host=db1 port=3306")
	other("host=db1", "host=db1 replicated.cluster=c")
	other("replicated://source-plain?primary=x", "replicated://source-plain?primary=y")
	for _, dsn := range []string{"u:s3cr3t@tcp(db1)/a", "host=db1 password=s3cr3t", "replicated://source-plain?primary=s3cr3t"} {
		if strings.Contains(key(dsn), "s3cr3t") {
			t.Errorf("%s shows the password", key(dsn))
		}
	}

	one, two := &countingConnector{}, &countingConnector{}
	of := func(c driver.Connector) string {
		s, err := Config{Nodes: []Node{{Connector: c}}}.normalize()
		if err != nil {
			t.Fatal(err)
		}
		return s.clusterKey()
	}
	first, again, another := of(one), of(one), of(two)
	if first != again || first == another {
		t.Errorf("connectors: %s, again %s, another %s", first, again, another)
	}
}

func TestRedact(t *testing.T) {
	plainError := errors.New("replicated: nothing secret")
	if got := redact(plainError, "u:pw@tcp(h)/d"); got != plainError {
		t.Errorf("changed to %v", got)
	}
	if redact(nil, "x") != nil {
		t.Error("nil became an error")
	}
	for _, tt := range []struct{ dsn, message, want string }{
		{"u:a@b/c@tcp(h)/d", "at a@b/c", "at xxxxx"},
		{"postgres://u:a%40bcd@h/d", "at a@bcd and a%40bcd", "at xxxxx and xxxxx"},
		{"host=h password='it is' x=1", "at it is", "at xxxxx"},
		{"host=h PASSWORD = long-one x=1", "at long-one", "at xxxxx"},
		{"server=h;pwd=s3cr3t;x=1", "at s3cr3t", "at xxxxx"},
		{"u:e@tcp(h)/d", "replicated: the e and the end: e", "replicated: the xxxxx and the end: xxxxx"},
		{"u:replicated@tcp(h)/d", "replicated: replicated", "replicated: xxxxx"},
		{"some-opaque-text", "cannot open some-opaque-text", "cannot open …"},
	} {
		err := redact(&mysql.MySQLError{Message: tt.message}, tt.dsn)
		if got := strings.TrimPrefix(err.Error(), "Error 0: "); got != tt.want && !strings.HasPrefix(tt.message, "replicated") {
			t.Errorf("%s: got %q, want %q", tt.dsn, got, tt.want)
		}
		if errors.Unwrap(err) != nil {
			t.Errorf("%s: the original is still in the chain", tt.dsn)
		}
		if got := redact(errors.New(tt.message), tt.dsn).Error(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.dsn, got, tt.want)
		}
	}
}
