package replicated

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// The drivers that we reach nodes with ourselves. Every other name is looked up
// among the registered drivers.
const (
	driverMySQL    = "mysql"
	driverPostgres = "postgres"
)

// errEmptyDSN is what parse returns for an empty DSN. Opening with one has to
// succeed, and the first Connect to fail: otelsql.Register opens its driver so.
var errEmptyDSN = errors.New("replicated: the DSN is empty")

// ParseDSN reads a DSN into a [Config]. It has one of these forms, and lists the
// primary first:
//
//	user:password@tcp(db1:3306,db2:3306)/dbname?param=value        go-sql-driver/mysql
//	postgres://user:password@db1:5432,db2:5432/dbname?param=value  lib/pq, URL
//	host=db1,db2 port=5432 user=app dbname=shop                    lib/pq, key=value
//	replicated://driver?primary=<DSN>&replica=<DSN>&replica=<DSN>  any registered driver
//
// The first three are the wrapped driver's own, with a list of hosts in place of
// one; sockets, IPv6 addresses in brackets, a port per host and one port for all
// work. In the last, each node has a DSN of its own, escaped as in a URL query.
// With replicated.driver in one of the first three, each node's DSN goes, as text
// with one host, to that registered driver.
//
// Keys that begin with "replicated." fill the Config, see its fields. Every other
// parameter reaches every node unchanged, with these exceptions:
//
//   - target_session_attrs, load_balance_hosts, rejectReadOnly, tx_read_only,
//     transaction_read_only and checkConnLiveness=false are errors, since they
//     would choose a node, or a transaction mode, behind our back; values that ask
//     for nothing (any, disable, rejectReadOnly=false) are dropped;
//   - autocommit reaches the primary alone: a replica connection without
//     autocommit would serve one old snapshot to everybody;
//   - PGHOST, PGHOSTADDR, PGPORT, PGTARGETSESSIONATTRS and PGLOADBALANCEHOSTS
//     are ignored. The other variables that lib/pq knows count as ever.
//
// In the MySQL form a "/" in a value has to be written %2F. A DSN without a host is
// an error, as are an unknown replicated.* key, a key given twice, and a node
// given twice. Errors name the key or the host, and never show a password.
func ParseDSN(dsn string) (Config, error) { return parse(dsn, "") }

// parse is ParseDSN. A forced driver, "mysql" or "postgres", comes from a driver
// name of ours that promises its dialect; any other is then an error.
func parse(dsn, forced string) (Config, error) {
	if strings.TrimSpace(dsn) == "" {
		return Config{}, errEmptyDSN
	}
	if strings.IndexByte(dsn, 0) >= 0 {
		return Config{}, errors.New("replicated: the DSN has a NUL byte in it")
	}
	var cfg Config
	var err error
	switch {
	case strings.HasPrefix(dsn, schemeNodes):
		cfg, err = parseNodes(dsn)
	case forced == driverPostgres || forced == "" && looksPostgres(dsn):
		cfg, err = parsePostgres(dsn)
	case forced == driverMySQL && looksPostgres(dsn):
		err = errors.New("replicated: the driver name mysql-replicated takes a MySQL DSN, user:password@tcp(host:port)/dbname, and this one has a host list of PostgreSQL's form")
	default:
		cfg, err = parseMySQL(dsn)
	}
	if err != nil {
		return Config{}, redact(err, dsn)
	}
	if d := dialectOfName(cfg.Driver); forced != "" && d != dialectOfName(forced) && d != classify.Generic {
		return Config{}, fmt.Errorf("replicated: the driver name %s-replicated was opened with replicated.driver=%s, which speaks another dialect", forced, cfg.Driver)
	}
	if err := checkNodes(cfg.Nodes); err != nil {
		return Config{}, redact(err, dsn)
	}
	return cfg, nil
}

// FormatDSN writes the DSN that [ParseDSN] reads into an equal Config: in the
// native form where the nodes differ in nothing but the host, else in the
// replicated:// form. Observe and Logger are left out. A Config that text cannot
// carry is an error: a node with a Connector, Weight or Zone, or with a Name or
// Address other than its DSN gives.
//
// The text has the passwords that are in the nodes' DSNs.
func FormatDSN(cfg Config) (string, error) {
	if err := checkKeys(&cfg); err != nil {
		return "", err
	}
	if cfg.Driver == "" && len(cfg.Nodes) > 0 {
		cfg.Driver = driverOfText(cfg.Nodes[0].DSN)
	}
	for i, n := range cfg.Nodes {
		address, err := addressOf(cfg.Driver, n.DSN)
		if err != nil {
			return "", redact(nodeRefused(i, err), n.DSN)
		}
		switch where := ordinal(i); {
		case n.Connector != nil:
			return "", fmt.Errorf("replicated: %s has a Connector, which no DSN can carry", where)
		case n.Weight != 0:
			return "", fmt.Errorf("replicated: %s has a Weight, which no DSN can carry", where)
		case n.Zone != "":
			return "", fmt.Errorf("replicated: %s has a Zone, which no DSN can carry", where)
		case n.Address != "" && n.Address != address:
			return "", fmt.Errorf("replicated: %s has an Address of its own, which no DSN can carry", where)
		case n.Name != "" && n.Name != address:
			return "", fmt.Errorf("replicated: %s has a Name of its own, which no DSN can carry", where)
		}
	}
	if dsn, ok := formatNative(&cfg); ok {
		// Addresses of a network that is the user's own may join into something else.
		if again, err := ParseDSN(dsn); err == nil && len(again.Nodes) == len(cfg.Nodes) {
			return dsn, nil
		}
	}
	dsn := formatNodes(&cfg)
	if _, err := ParseDSN(dsn); err != nil {
		return "", err
	}
	return dsn, nil
}

// formatNative writes a DSN in the form of one of our two drivers, if there is one.
func formatNative(cfg *Config) (string, bool) {
	switch cfg.Driver {
	case driverMySQL:
		return formatMySQL(cfg)
	case driverPostgres:
		return formatPostgres(cfg)
	default:
		return "", false
	}
}

// checkNodes refuses an empty list, one that is too long, and nodes given twice.
func checkNodes(nodes []Node) error {
	if len(nodes) == 0 {
		return errors.New("replicated: empty host list: name the primary first, then its replicas")
	}
	if len(nodes) > maxNodes {
		return fmt.Errorf("replicated: the host list has %d nodes, more than %d", len(nodes), maxNodes)
	}
	for i, n := range nodes {
		for j, m := range nodes[:i] {
			switch {
			case n.Address != "" && strings.EqualFold(n.Address, m.Address):
				return fmt.Errorf("replicated: the node %s is listed twice, as %s and as %s", n.Address, ordinal(j), ordinal(i))
			case n.DSN != "" && n.DSN == m.DSN:
				return fmt.Errorf("replicated: %s and %s have the same DSN", ordinal(j), ordinal(i))
			case n.Name != "" && n.Name == m.Name:
				return fmt.Errorf("replicated: %s and %s have the same name, %q", ordinal(j), ordinal(i), n.Name)
			}
		}
	}
	return nil
}

// ordinal is what a node without a better name is called.
func ordinal(i int) string {
	if i == 0 {
		return "primary"
	}
	return "replica" + strconv.Itoa(i)
}

func nodeRefused(i int, err error) error {
	return fmt.Errorf("%w (in the DSN of the %s)", err, ordinal(i))
}

// nodeDSN is the DSN of a single node, in a grammar that we know.
type nodeDSN interface {
	addresses() []string
	ours() []param
	check(driver string) error
	flag(name string) bool // a native boolean parameter
	readOnly() string      // the text for a replica's connections
	dialect() classify.Dialect
	String() string
}

// parseNode reads the DSN of one node in the driver's grammar, and is nil where that
// is not known: the text then goes to the registered driver as it is.
func parseNode(driver, dsn string) (nodeDSN, error) {
	n, err := splitNode(driver, dsn)
	if n == nil || err != nil {
		return nil, err
	}
	if ours := n.ours(); len(ours) > 0 {
		return nil, fmt.Errorf("replicated: the key %s stands in the DSN of a node: it belongs to the whole", shown(ours[0].key))
	}
	if a := n.addresses(); len(a) != 1 {
		return nil, fmt.Errorf("replicated: a node's DSN names %d hosts, %s: give each host a node of its own", len(a), strings.Join(a, ", "))
	}
	return n, n.check(driver)
}

// splitNode finds the grammar of a node's DSN: by the driver's name, else by the text.
func splitNode(driver, dsn string) (nodeDSN, error) {
	d := dialectOfName(driver)
	switch {
	case driver == driverMySQL:
		return orNil(splitMySQL(dsn))
	case driver == driverPostgres, d != classify.AnyMySQL && hasPostgresScheme(dsn), d == classify.Postgres && looksPostgres(dsn):
		return orNil(splitPostgres(dsn))
	case d == classify.Postgres:
		return nil, nil // the name of a stored configuration, as pgx has them
	}
	if d == classify.Generic && looksPostgres(dsn) {
		if n, err := splitPostgres(dsn); err == nil {
			return n, nil
		}
	}
	// Not every driver of MySQL has this grammar, and others may have one that looks
	// like it: with an unknown name the network has to be a well-known one.
	if n, err := splitMySQL(dsn); err == nil && (d == classify.AnyMySQL || isTCP(n.net) || n.net == "unix") {
		return n, nil
	}
	return nil, nil
}

// orNil keeps a nil pointer from becoming an interface that is not nil.
func orNil[D nodeDSN](n D, err error) (nodeDSN, error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

// addressOf is the address that a node's DSN names, "" where its grammar is not
// known or there is no DSN.
func addressOf(driver, dsn string) (string, error) {
	if dsn == "" {
		return "", nil
	}
	n, err := parseNode(driver, dsn)
	if err != nil || n == nil {
		return "", err
	}
	return n.addresses()[0], nil
}

// driverOfText is the driver whose grammar a DSN has.
func driverOfText(dsn string) string {
	if looksPostgres(dsn) {
		return driverPostgres
	}
	return driverMySQL
}

// splitHosts cuts a host list at its commas, those within brackets excepted.
func splitHosts(list string) []string {
	var hosts []string
	depth, start := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth <= 0 {
				hosts = append(hosts, list[start:i])
				start = i + 1
			}
		}
	}
	return append(hosts, list[start:])
}

// splitHostPort reads host, host:port, [v6], [v6]:port and a bare v6 address. The
// port is "" where there is none.
func splitHostPort(s string) (host, port string, err error) {
	if isIP(s) {
		return s, "", nil
	}
	host = s
	if rest, ok := strings.CutPrefix(s, "["); ok {
		inside, after, closed := strings.Cut(rest, "]")
		if !closed || !isIP(inside) {
			return "", "", fmt.Errorf("replicated: bad host %s in the host list: in brackets stands an IPv6 address", shownHost(s))
		}
		host = inside
		if after == "" {
			return host, "", nil
		}
		if port, ok = strings.CutPrefix(after, ":"); !ok {
			return "", "", fmt.Errorf("replicated: bad host %s in the host list: after the bracket follows a port", shownHost(s))
		}
	} else if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i+1:]
	} else {
		return host, "", checkHost(host)
	}
	if _, err := parsePort(port, host); err != nil {
		return "", "", err
	}
	return host, port, checkHost(host)
}

// isIP reports whether s is an IP address. Its zone may be anything to netip, even
// a piece of our list.
func isIP(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && plainName(a.Zone())
}

func checkHost(host string) error {
	if host == "" {
		return errors.New("replicated: empty host in the host list")
	}
	if isIP(host) {
		return nil
	}
	for _, r := range host {
		if r != '.' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return fmt.Errorf("replicated: bad host %s in the host list: %q is not part of a host name", shownHost(host), r)
		}
	}
	return nil
}

// shownHost quotes a host for an error, unless it looks as if a password were in it:
// where the @ after one is missing, it is read as a host, or as a port.
func shownHost(host string) string {
	name, port, _ := strings.Cut(host, ":")
	if !strings.HasPrefix(host, "[") && strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) {
		return `"…"`
	}
	for _, r := range name + port {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_:[] ", r) {
			return `"…"`
		}
	}
	return strconv.Quote(host)
}

func shownPort(port string) string {
	if len(port) > 5 {
		return `"…"`
	}
	return strconv.Quote(port)
}

// parsePort reads a port, of which host is for the error.
func parsePort(port, host string) (uint16, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("replicated: bad port %s of the host %s: it accepts a number from 1 to 65535", shownPort(port), shownHost(host))
	}
	return uint16(n), nil
}
