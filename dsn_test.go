package replicated_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated"
)

// dsnNode is a Node as ParseDSN makes it.
func dsnNode(address, dsn string) replicated.Node {
	return replicated.Node{Address: address, DSN: dsn}
}

var parseTests = []struct {
	name string
	dsn  string
	want replicated.Config
}{
	{
		name: "MySQL, a list with ports",
		dsn:  "app:pw@tcp(db1:3306,db2:3307,db3:3308)/shop?parseTime=true&replicated.max_lag=2s",
		want: replicated.Config{Driver: "mysql", MaxLag: 2 * time.Second, Nodes: []replicated.Node{
			dsnNode("db1:3306", "app:pw@tcp(db1:3306)/shop?parseTime=true"),
			dsnNode("db2:3307", "app:pw@tcp(db2:3307)/shop?parseTime=true"),
			dsnNode("db3:3308", "app:pw@tcp(db3:3308)/shop?parseTime=true"),
		}},
	},
	{
		name: "MySQL, default port, one host",
		dsn:  "app@tcp(db1)/",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{dsnNode("db1:3306", "app@tcp(db1:3306)/")}},
	},
	{
		name: "MySQL, no user and the default network",
		dsn:  "(db1,db2)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("db1:3306", "tcp(db1:3306)/shop"), dsnNode("db2:3306", "tcp(db2:3306)/shop"),
		}},
	},
	{
		name: "MySQL, IPv6",
		dsn:  "app@tcp([::1]:3306,[::2],fe80::1)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("[::1]:3306", "app@tcp([::1]:3306)/shop"),
			dsnNode("[::2]:3306", "app@tcp([::2]:3306)/shop"),
			dsnNode("[fe80::1]:3306", "app@tcp([fe80::1]:3306)/shop"),
		}},
	},
	{
		name: "MySQL, sockets",
		dsn:  "app@unix(/run/a.sock,/run/b.sock)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("/run/a.sock", "app@unix(/run/a.sock)/shop"), dsnNode("/run/b.sock", "app@unix(/run/b.sock)/shop"),
		}},
	},
	{
		name: "MySQL, a network of the user's",
		dsn:  "app@cloudsql(p:eu:a,p:eu:b)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("p:eu:a", "app@cloudsql(p:eu:a)/shop"), dsnNode("p:eu:b", "app@cloudsql(p:eu:b)/shop"),
		}},
	},
	{
		name: "MySQL, mangled by its FormatDSN",
		dsn:  "app@tcp([db1:3306,db2:3306]:3306)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("db1:3306", "app@tcp(db1:3306)/shop"), dsnNode("db2:3306", "app@tcp(db2:3306)/shop"),
		}},
	},
	{
		name: "MySQL, IPv6 mangled by its FormatDSN",
		dsn:  "app@tcp([[::1]:3306,[::2]:3307]:3306)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("[::1]:3306", "app@tcp([::1]:3306)/shop"), dsnNode("[::2]:3307", "app@tcp([::2]:3307)/shop"),
		}},
	},
	{
		name: "MySQL, the first bracket and the last are no pair",
		dsn:  "app@tcp([::1]:3306,[::2]:3307)/shop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("[::1]:3306", "app@tcp([::1]:3306)/shop"), dsnNode("[::2]:3307", "app@tcp([::2]:3307)/shop"),
		}},
	},
	{
		name: "MySQL, a password of separators",
		dsn:  "app:a@b/c:d?e&f=(g)@tcp(db1)/shop?replicated.reads=off",
		want: replicated.Config{Driver: "mysql", Reads: replicated.ReadsOff, Nodes: []replicated.Node{
			dsnNode("db1:3306", "app:a@b/c:d?e&f=(g)@tcp(db1:3306)/shop"),
		}},
	},
	{
		name: "MySQL, parameters that ask for nothing",
		dsn:  "app@tcp(db1)/shop?rejectReadOnly=false&checkConnLiveness=true&autocommit=0",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("db1:3306", "app@tcp(db1:3306)/shop?checkConnLiveness=true&autocommit=0"),
		}},
	},
	{
		name: "MySQL, a registered driver",
		dsn:  "app@tcp(db1,db2)/shop?replicated.driver=mysql-traced&x=1",
		want: replicated.Config{Driver: "mysql-traced", Nodes: []replicated.Node{
			dsnNode("db1:3306", "app@tcp(db1:3306)/shop?x=1"), dsnNode("db2:3306", "app@tcp(db2:3306)/shop?x=1"),
		}},
	},
	{
		name: "URL, a port for each",
		dsn:  "postgres://app:p%40w@db1:5432,db2:5433/shop?sslmode=disable&replicated.consistency=session",
		want: replicated.Config{Driver: "postgres", Consistency: replicated.ConsistencySession, Nodes: []replicated.Node{
			dsnNode("db1:5432", "postgres://app:p%40w@db1:5432/shop?sslmode=disable"),
			dsnNode("db2:5433", "postgres://app:p%40w@db2:5433/shop?sslmode=disable"),
		}},
	},
	{
		name: "URL, default port, no user",
		dsn:  "postgresql://db1,db2/shop",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("db1:5432", "postgresql://db1:5432/shop"), dsnNode("db2:5432", "postgresql://db2:5432/shop"),
		}},
	},
	{
		name: "URL, one default port at the end means all",
		dsn:  "postgres://db1,db2:5432",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("db1:5432", "postgres://db1:5432"), dsnNode("db2:5432", "postgres://db2:5432"),
		}},
	},
	{
		name: "URL, one port for all as a parameter",
		dsn:  "postgres://app@db1,db2/shop?port=6432",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("db1:6432", "postgres://app@db1:6432/shop"), dsnNode("db2:6432", "postgres://app@db2:6432/shop"),
		}},
	},
	{
		name: "URL, ports as a parameter",
		dsn:  "postgres://app@db1,db2/shop?port=6432,",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("db1:6432", "postgres://app@db1:6432/shop"), dsnNode("db2:5432", "postgres://app@db2:5432/shop"),
		}},
	},
	{
		name: "URL, IPv6",
		dsn:  "postgres://app@[::1]:5432,[::2]:5433/shop",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("[::1]:5432", "postgres://app@[::1]:5432/shop"), dsnNode("[::2]:5433", "postgres://app@[::2]:5433/shop"),
		}},
	},
	{
		name: "URL, hosts as a parameter",
		dsn:  "postgres://app@/shop?host=db1,/run/pg&port=5433",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("db1:5433", "postgres://app@db1:5433/shop"),
			dsnNode("/run/pg/.s.PGSQL.5433", "postgres://app@/shop?host=%2Frun%2Fpg&port=5433"),
		}},
	},
	{
		name: "URL, a socket as an escaped host",
		dsn:  "postgres://app@%2Frun%2Fpg:5433/shop",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("/run/pg/.s.PGSQL.5433", "postgres://app@/shop?host=%2Frun%2Fpg&port=5433"),
		}},
	},
	{
		name: "URL, a registered driver",
		dsn:  "postgres://app@db1,db2/shop?replicated.driver=pgx&default_query_exec_mode=exec",
		want: replicated.Config{Driver: "pgx", Nodes: []replicated.Node{
			dsnNode("db1:5432", "postgres://app@db1:5432/shop?default_query_exec_mode=exec"),
			dsnNode("db2:5432", "postgres://app@db2:5432/shop?default_query_exec_mode=exec"),
		}},
	},
	{
		name: "pairs, one port for all",
		dsn:  "host=db1,db2 port=5433 dbname=shop password=p=w replicated.sticky=0 replicated.consistency=eventual",
		want: replicated.Config{Driver: "postgres", Sticky: -1, Consistency: replicated.ConsistencyEventual, Nodes: []replicated.Node{
			dsnNode("db1:5433", "host=db1 port=5433 dbname=shop password=p=w"),
			dsnNode("db2:5433", "host=db2 port=5433 dbname=shop password=p=w"),
		}},
	},
	{
		name: "pairs, quotes and escapes",
		dsn:  `host = '/run/pg dir,db2'  password='it\'s \\ @/:%' options=-c\ geqo=off user=''`,
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("/run/pg dir/.s.PGSQL.5432", `host='/run/pg dir' port=5432 password='it\'s \\ @/:%' options='-c geqo=off' user=''`),
			dsnNode("db2:5432", `host=db2 port=5432 password='it\'s \\ @/:%' options='-c geqo=off' user=''`),
		}},
	},
	{
		name: "pairs, addresses",
		dsn:  "hostaddr=10.0.0.1,::2 port=5432,5433 user=app",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("10.0.0.1:5432", "hostaddr=10.0.0.1 port=5432 user=app"),
			dsnNode("[::2]:5433", "hostaddr=::2 port=5433 user=app"),
		}},
	},
	{
		name: "pairs, hosts with some addresses, and what asks for nothing",
		dsn:  "host=db1,db2 hostaddr=,10.0.0.2 target_session_attrs=any load_balance_hosts=disable",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{
			dsnNode("db1:5432", "host=db1 port=5432"), dsnNode("db2:5432", "host=db2 hostaddr=10.0.0.2 port=5432"),
		}},
	},
	{
		name: "pairs, our key first",
		dsn:  "replicated.reads=opt-in host=db1",
		want: replicated.Config{Driver: "postgres", Reads: replicated.ReadsOptIn, Nodes: []replicated.Node{dsnNode("db1:5432", "host=db1 port=5432")}},
	},
	{
		name: "pairs, an unknown key first",
		dsn:  "search_path=app host=db1",
		want: replicated.Config{Driver: "postgres", Nodes: []replicated.Node{dsnNode("db1:5432", "host=db1 port=5432 search_path=app")}},
	},
	{
		name: "a DSN per node, of a driver nobody knows",
		dsn:  "replicated://lite?primary=file%3Aa.db%3Fcache%3Dshared&replica=file%3Ab.db&replicated.balance=round-robin",
		want: replicated.Config{Driver: "lite", Balance: replicated.BalanceRoundRobin, Nodes: []replicated.Node{
			dsnNode("", "file:a.db?cache=shared"), dsnNode("", "file:b.db"),
		}},
	},
	{
		name: "a DSN per node, of pgx: as it stands",
		dsn:  "replicated://pgx/?primary=postgres%3A%2F%2Fu:p%40db1%2Fshop&replica=stored0",
		want: replicated.Config{Driver: "pgx", Nodes: []replicated.Node{
			dsnNode("db1:5432", "postgres://u:p@db1/shop"), dsnNode("", "stored0"),
		}},
	},
	{
		name: "a DSN per node, which differ in more than the host",
		dsn:  "replicated://mysql?primary=rw:a@tcp(db1)%2Fshop&replica=ro:b@tcp(db2)%2Fshop",
		want: replicated.Config{Driver: "mysql", Nodes: []replicated.Node{
			dsnNode("db1:3306", "rw:a@tcp(db1:3306)/shop"), dsnNode("db2:3306", "ro:b@tcp(db2:3306)/shop"),
		}},
	},
	{
		name: "pairs, a driver whose name tells nothing",
		dsn:  "host=db1 replicated.driver=a@b:/#%",
		want: replicated.Config{Driver: "a@b:/#%", Nodes: []replicated.Node{dsnNode("db1:5432", "host=db1 port=5432")}},
	},
	{
		name: "every key",
		dsn: "host=db1 replicated.topology=discover replicated.reads=shadow replicated.consistency=eventual replicated.max_lag=1s " +
			"replicated.max_blind=0 replicated.wait=10ms replicated.tracker=heartbeat replicated.sticky=3s replicated.readonly_tx=primary " +
			"replicated.balance=round-robin replicated.zone=eu-1a replicated.connect_timeout=0 replicated.breaker_failures=5 replicated.breaker_open=2s " +
			"replicated.stmt_cache=0 replicated.replica_max_idle=0 replicated.replica_max_lifetime=0 replicated.replica_max_idle_time=9s " +
			"replicated.primary_down=stale replicated.primary_read_limit=7 replicated.cluster=c-1",
		want: replicated.Config{
			Driver: "postgres", Nodes: []replicated.Node{dsnNode("db1:5432", "host=db1 port=5432")},
			Topology: replicated.TopologyDiscover, Reads: replicated.ReadsShadow, Consistency: replicated.ConsistencyEventual,
			MaxLag: time.Second, MaxBlind: -1, Wait: 10 * time.Millisecond, Tracker: replicated.TrackerHeartbeat,
			Sticky: 3 * time.Second, ReadOnlyTx: replicated.ReadOnlyTxPrimary, Balance: replicated.BalanceRoundRobin,
			Zone: "eu-1a", ConnectTimeout: -1, BreakerFailures: 5, BreakerOpen: 2 * time.Second, StmtCache: -1, ReplicaMaxIdle: -1,
			ReplicaMaxLifetime: -1, ReplicaMaxIdleTime: 9 * time.Second, PrimaryDown: replicated.PrimaryDownStale,
			PrimaryReadLimit: 7, ClusterName: "c-1",
		},
	},
}

func TestParseDSN(t *testing.T) {
	for _, tt := range parseTests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replicated.ParseDSN(tt.dsn)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("ParseDSN(%q)\n got %s\nwant %s", tt.dsn, dumpConfig(got), dumpConfig(tt.want))
			}
		})
	}
}

// dumpConfig shows a Config with the DSNs, which Node hides.
func dumpConfig(c replicated.Config) string {
	s := fmt.Sprintf("%+v", c)
	for _, n := range c.Nodes {
		s += fmt.Sprintf("\n\t%s %q", n.Address, n.DSN)
	}
	return s
}

func TestFormatDSNIsReadBackAsAnEqualConfig(t *testing.T) {
	for _, tt := range parseTests {
		t.Run(tt.name, func(t *testing.T) { roundTrip(t, tt.dsn) })
	}
}

// roundTrip checks that format and parse are each other's inverse on what parse gives.
func roundTrip(t *testing.T, dsn string) {
	t.Helper()
	cfg, err := replicated.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	text, err := replicated.FormatDSN(cfg)
	if err != nil {
		t.Fatalf("FormatDSN of ParseDSN(%q): %v", dsn, err)
	}
	again, err := replicated.ParseDSN(text)
	if err != nil {
		t.Fatalf("%q written as %q: %v", dsn, text, err)
	}
	if !reflect.DeepEqual(cfg, again) {
		t.Errorf("%q written as %q\n got %s\nwant %s", dsn, text, dumpConfig(again), dumpConfig(cfg))
	}
	if twice, err := replicated.FormatDSN(again); err != nil || twice != text {
		t.Errorf("%q, then %q (%v)", text, twice, err)
	}
}

// GORM opens with a DSN that has gone through mysql.ParseDSN and mysql.FormatDSN.
func TestDSNSurvivesTheFormatOfItsDriver(t *testing.T) {
	for _, dsn := range []string{
		"app:pw@tcp(db1:3306,db2:3306)/shop?parseTime=true&replicated.max_lag=2s",
		"app:pw@tcp(db1,db2)/shop?replicated.driver=mysql-x",
		"app:pw@tcp(db1,db2:3307)/shop",
		"app:pw@tcp(db1)/shop?tls=true",
		"app:pw@tcp([::1]:3306,[::2]:3307)/shop",
		"app:pw@tcp([::1],[::2])/shop",
		"app:pw@tcp([::1])/shop",
		"app:pw@unix(/a.sock,/b.sock)/shop",
	} {
		native, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		want, err := replicated.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		got, err := replicated.ParseDSN(native.FormatDSN())
		if err != nil {
			t.Errorf("%s, written as %s: %v", dsn, native.FormatDSN(), err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s, written as %s\n got %s\nwant %s", dsn, native.FormatDSN(), dumpConfig(got), dumpConfig(want))
		}
	}
}

func TestFormatDSN(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  replicated.Config
		want string // the text, or what the error has in it after "!"
	}{
		{
			name: "the native form where nodes differ in the host alone",
			cfg:  replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d?x=1"}, {DSN: "u@tcp(b:3307)/d?x=1"}}, MaxLag: time.Minute},
			want: "u@tcp(a:3306,b:3307)/d?x=1&replicated.max_lag=1m0s",
		},
		{
			name: "a URL",
			cfg:  replicated.Config{Nodes: []replicated.Node{{DSN: "postgres://u:p%2F@a/d"}, {DSN: "postgres://u:p%2F@[::1]:1/d"}}, Reads: replicated.ReadsOff},
			want: "postgres://u:p%2F@a:5432,[::1]:1/d?replicated.reads=off",
		},
		{
			name: "a URL with sockets",
			cfg:  replicated.Config{Driver: "postgres", Nodes: []replicated.Node{{DSN: "postgres:///d?host=/a"}, {DSN: "postgres://b/d"}}},
			want: "postgres:///d?host=%2Fa%2Cb&port=5432",
		},
		{
			name: "pairs",
			cfg:  replicated.Config{Nodes: []replicated.Node{{DSN: "host=a password='x y'"}, {DSN: "host=b port=1 password='x y'"}}, StmtCache: -3},
			want: "host=a,b port=5432,1 password='x y' replicated.stmt_cache=0",
		},
		{
			name: "nodes with different users",
			cfg:  replicated.Config{Nodes: []replicated.Node{{DSN: "rw@tcp(a)/d"}, {DSN: "ro@tcp(b)/d"}}},
			want: "replicated://mysql?primary=rw%40tcp%28a%29%2Fd&replica=ro%40tcp%28b%29%2Fd",
		},
		{
			name: "a driver nobody knows",
			cfg:  replicated.Config{Driver: "my lite", Nodes: []replicated.Node{{DSN: "a&b"}}, PrimaryReadLimit: 2},
			want: "replicated://my%20lite?primary=a%26b&replicated.primary_read_limit=2",
		},
		{
			name: "addresses that a list would join",
			cfg:  replicated.Config{Nodes: []replicated.Node{{DSN: "u@own([a)/d"}, {DSN: "u@own(b])/d"}}},
			want: "replicated://mysql?primary=u%40own%28%5Ba%29%2Fd&replica=u%40own%28b%5D%29%2Fd",
		},
		{name: "no nodes", cfg: replicated.Config{Driver: "mysql"}, want: "!empty host list"},
		{name: "a Connector", cfg: replicated.Config{Nodes: []replicated.Node{{Connector: noConnector{}}}}, want: "!primary has a Connector"},
		{name: "a Weight", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d"}, {DSN: "u@tcp(b)/d", Weight: 2}}}, want: "!replica1 has a Weight"},
		{name: "a Zone", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d", Zone: "z"}}}, want: "!primary has a Zone"},
		{name: "a Name", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d", Name: "n"}}}, want: "!primary has a Name"},
		{name: "a name that is the address", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d", Name: "a:3306"}}}, want: "u@tcp(a:3306)/d"},
		{name: "an Address", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d", Address: "b:3306"}}}, want: "!primary has an Address"},
		{name: "a bad value", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d"}}, MaxLag: -1}, want: "!replicated.max_lag"},
		{name: "a bad enum", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u@tcp(a)/d"}}, Reads: 77}, want: "!replicated.reads"},
		{name: "a bad DSN", cfg: replicated.Config{Nodes: []replicated.Node{{DSN: "u:s3cr3t@tcp(a:x)/d"}}}, want: `!bad port "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replicated.FormatDSN(tt.cfg)
			if message, ok := strings.CutPrefix(tt.want, "!"); ok {
				if err == nil || !strings.Contains(err.Error(), message) {
					t.Fatalf("got %q and error %v, want an error with %q", got, err, message)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Fatalf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// malformed reads the DSNs of testdata/dsn/malformed.txt and what their errors say.
func malformed(tb testing.TB) (cases [][2]string) {
	tb.Helper()
	text, err := os.ReadFile("testdata/dsn/malformed.txt")
	if err != nil {
		tb.Fatal(err)
	}
	dsn := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		want, ok := strings.CutPrefix(line, "> ")
		switch {
		case ok && dsn == "":
			tb.Fatalf("malformed.txt: %q follows no DSN", line)
		case ok:
			cases, dsn = append(cases, [2]string{dsn, want}), ""
		case line != "" && line[0] != '#':
			dsn = line
		}
	}
	return cases
}

func TestMalformedDSNIsRefusedByKeyOrHost(t *testing.T) {
	cases := malformed(t)
	if len(cases) < 40 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c[0], func(t *testing.T) {
			cfg, err := replicated.ParseDSN(c[0])
			if err == nil {
				t.Fatalf("accepted as %s", dumpConfig(cfg))
			}
			msg := err.Error()
			if !strings.Contains(msg, c[1]) {
				t.Errorf("error %q has no %q", msg, c[1])
			}
			if !strings.HasPrefix(msg, "replicated: ") || strings.HasSuffix(msg, ".") {
				t.Errorf("error %q has not the form of ours", msg)
			}
			if strings.Contains(msg, "s3cr") || strings.Contains(msg, "cr3t") {
				t.Errorf("error %q shows the password", msg)
			}
		})
	}
}

func TestParseDSNRefuses65Nodes(t *testing.T) {
	hosts := make([]string, 65)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("db%d", i)
	}
	if _, err := replicated.ParseDSN("tcp(" + strings.Join(hosts[:64], ",") + ")/"); err != nil {
		t.Errorf("64 nodes: %v", err)
	}
	_, err := replicated.ParseDSN("tcp(" + strings.Join(hosts, ",") + ")/")
	if err == nil || !strings.Contains(err.Error(), "65 nodes, more than 64") {
		t.Errorf("65 nodes: %v", err)
	}
}

func TestParseDSNRefusesNUL(t *testing.T) {
	if _, err := replicated.ParseDSN("host=db1 user=a\x00b"); err == nil {
		t.Error("accepted")
	}
}

// TestParseDSNIgnoresHostsOfTheEnvironment also covers the hosts that a DSN leaves out.
func TestParseDSNIgnoresHostsOfTheEnvironment(t *testing.T) {
	t.Setenv("PGHOST", "elsewhere")
	t.Setenv("PGHOSTADDR", "10.9.9.9")
	t.Setenv("PGPORT", "9999")
	for dsn, want := range map[string]string{"host=db1,db2": "db1:5432", "postgres://db1/shop": "db1:5432"} {
		cfg, err := replicated.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Nodes[0].Address; got != want {
			t.Errorf("%s: got the address %s, want %s", dsn, got, want)
		}
	}
	if _, err := replicated.ParseDSN("dbname=shop"); err == nil || !strings.Contains(err.Error(), "empty host list") {
		t.Errorf("no host in the DSN: %v", err)
	}
}

func TestNodeShowsNoDSN(t *testing.T) {
	cfg, err := replicated.ParseDSN("app:s3cr3t@tcp(db1,db2)/shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, cfg); strings.Contains(s, "s3cr3t") || !strings.Contains(s, "db2:3306") {
			t.Errorf("%s: %s", verb, s)
		}
	}
}

func ExampleParseDSN() {
	cfg, err := replicated.ParseDSN("app:secret@tcp(db1:3306,db2:3306)/shop?parseTime=true&replicated.max_lag=2s")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Driver, cfg.Nodes, cfg.MaxLag)

	_, err = replicated.ParseDSN("host=db1,db2 replicated.max_lagg=2s")
	fmt.Println(err)
	// Output:
	// mysql [db1:3306 db2:3306] 2s
	// replicated: unknown key "replicated.max_lagg": did you mean "replicated.max_lag"?
}
