package replicated

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// mysqlDSN is a DSN of go-sql-driver/mysql, cut into pieces that are kept as they
// are written: [userinfo@]net(addr,addr,…)/db?param&param.
//
// The hosts are split before the driver sees the text. Its own ParseDSN takes
// "h1:1,h2:2" for one address without an error, and with tls=true it fixes the
// certificate's name to the first host.
type mysqlDSN struct {
	userinfo string // with the "@", or empty
	net      string
	addrs    []string // host:port for tcp
	db       string
	params   []string // key=value
	keys     []param  // ours, decoded
}

const mysqlPort = "3306"

// isTCP reports whether a network of a MySQL DSN is one of the net package's.
func isTCP(network string) bool { return network == "tcp" || network == "tcp4" || network == "tcp6" }

// splitMySQL cuts a DSN as mysql.ParseDSN does: at the last slash, the last @ before
// it, and the first parenthesis between the two. Parameters that may not reach a
// node are refused, or dropped where they ask for nothing.
func splitMySQL(dsn string) (*mysqlDSN, error) {
	for _, scheme := range []string{"mysql://", "mariadb://"} {
		if strings.HasPrefix(dsn, scheme) {
			return nil, fmt.Errorf("replicated: the DSN begins with %q, which go-sql-driver/mysql takes for the user's name: write user:password@tcp(host:port)/dbname", scheme)
		}
	}
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return nil, errors.New("replicated: the DSN has no host list: it takes user:password@tcp(host:port,…)/dbname, a postgres:// URL, host=… key=value pairs, or replicated://driver?primary=…")
	}
	left, right := dsn[:slash], dsn[slash+1:]
	d := &mysqlDSN{}
	address := left
	if at := strings.LastIndexByte(left, '@'); at >= 0 {
		d.userinfo, address = left[:at+1], left[at+1:]
	}
	query := ""
	d.db, query, _ = strings.Cut(right, "?")
	if d.userinfo == "" && strings.Contains(d.db, "@") {
		return nil, errors.New("replicated: the slash between host list and database name is missing, as in tcp(host:port)/dbname")
	}
	if err := d.setAddress(address); err != nil {
		return nil, err
	}
	if _, err := url.PathUnescape(d.db); err != nil {
		return nil, fmt.Errorf("replicated: the database name after the host list %s has a %% that begins no escape: write %%25", strings.Join(d.addrs, ","))
	}
	return d, d.setParams(query)
}

func (d *mysqlDSN) setAddress(s string) error {
	network, list, ok := strings.Cut(s, "(")
	if !ok {
		return errors.New("replicated: empty host list: before the database name stands tcp(host:port,…) or unix(/path)")
	}
	if network == "" {
		network = "tcp" // the driver's default
	}
	if !plainName(network) {
		return errors.New("replicated: no network name before the host list: write tcp(host:port,…); is the @ after the password missing?")
	}
	if !strings.HasSuffix(list, ")") {
		if end := strings.LastIndexByte(list, ')'); end >= 0 {
			tail := list[end:]
			name, _, _ := strings.Cut(tail[strings.LastIndexAny(tail, "?&")+1:], "=")
			return fmt.Errorf("replicated: the parameter %s after the host list has a / in it: write %%2F", shown(name))
		}
		return fmt.Errorf("replicated: the host list after %q is not closed: the ) before the slash is missing", "(")
	}
	d.net = network
	list = strings.TrimSuffix(list, ")")
	if list == "" {
		return errors.New("replicated: empty host list: nothing stands in the parentheses before the database name")
	}
	port := mysqlPort
	if isTCP(network) {
		list, port = unmangle(list)
	}
	for _, item := range splitHosts(list) {
		if isTCP(network) {
			host, own, err := splitHostPort(item)
			if err != nil {
				return err
			}
			if own == "" {
				own = port
			}
			item = net.JoinHostPort(host, own)
		}
		if item == "" {
			return errors.New("replicated: empty host in the host list")
		}
		d.addrs = append(d.addrs, item)
	}
	return nil
}

// unmangle undoes what mysql.FormatDSN does to our host list. It takes the list for
// one IPv6 address without a port and writes [h1:3306,h2:3306]:3306, or [[::1]]:3306.
// GORM opens with a DSN that went through it. The outer port counts where a host has none.
func unmangle(list string) (inner, port string) {
	end := strings.LastIndexByte(list, ']')
	if end < 0 || list[0] != '[' || !strings.Contains(list[:end], ",") && list[1] != '[' {
		return list, mysqlPort
	}
	port, ok := strings.CutPrefix(list[end+1:], ":")
	inner = list[1:end]
	// In "[::1]:3306,[::2]:3306" the first bracket and the last are no pair.
	depth := 0
	for _, c := range inner {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth < 0 {
			return list, mysqlPort
		}
	}
	if _, err := parsePort(port, list); !ok || err != nil {
		return list, mysqlPort
	}
	return inner, port
}

func (d *mysqlDSN) setParams(query string) error {
	seen := make(map[string]bool)
	for piece := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(piece, "=")
		switch {
		case piece == "":
			continue
		case isOurs(name):
			if !ok {
				return noValue(name)
			}
			v, err := url.QueryUnescape(value)
			if err != nil {
				return fmt.Errorf("replicated: the value of %s has a %% that begins no escape: write %%25", shown(name))
			}
			d.keys = append(d.keys, param{name, v})
			continue
		case ok && seen[name]:
			return fmt.Errorf("replicated: parameter %s is given twice", shown(name))
		}
		seen[name] = ok
		keep, err := mysqlParam(name, value)
		if err != nil {
			return err
		}
		if keep {
			d.params = append(d.params, piece)
		}
	}
	return nil
}

// mysqlParam refuses the parameters that would decide what is ours to decide, and
// drops those of them that ask for nothing.
func mysqlParam(name, value string) (keep bool, err error) {
	no := value == "0" || value == "false" || value == "FALSE" || value == "False"
	switch name {
	case "rejectReadOnly":
		if no {
			return false, nil
		}
		return false, errors.New("replicated: remove rejectReadOnly from the DSN: it makes database/sql repeat statements; a node that has become read-only is noticed without it")
	case "checkConnLiveness":
		if no {
			return false, errors.New("replicated: remove checkConnLiveness=false from the DSN: without the check a write may fail on a connection that is already dead")
		}
	case "target_session_attrs", "load_balance_hosts":
		return false, fmt.Errorf("replicated: %s is a parameter of PostgreSQL: the DSN is in MySQL's form", name)
	case "strict":
		return false, errors.New("replicated: remove strict from the DSN: go-sql-driver/mysql no longer has a strict mode")
	}
	switch v := sysvar(name); v {
	case "tx_read_only", "transaction_read_only":
		return false, fmt.Errorf("replicated: remove %s from the DSN: use sql.TxOptions.ReadOnly, or WithReadOnly", v)
	}
	return true, nil
}

// sysvar is the system variable that a parameter sets. The driver sends what it does
// not know as SET name = value, where names have no case and may have a scope.
func sysvar(name string) string {
	v := strings.ToLower(strings.Trim(name, " `"))
	v = strings.TrimPrefix(v, "@@")
	for _, scope := range []string{"session", "local"} {
		if rest, ok := strings.CutPrefix(v, scope); ok && rest != "" && (rest[0] == '.' || rest[0] == ' ') {
			v = rest[1:]
		}
	}
	return strings.Trim(v, " `")
}

func (d *mysqlDSN) dialect() classify.Dialect { return classify.AnyMySQL }
func (d *mysqlDSN) addresses() []string       { return d.addrs }
func (d *mysqlDSN) ours() []param             { return d.keys }

// String returns the text without our keys.
func (d *mysqlDSN) String() string {
	s := d.userinfo + d.net + "(" + strings.Join(d.addrs, ",") + ")/" + d.db
	if len(d.params) > 0 {
		s += "?" + strings.Join(d.params, "&")
	}
	return s
}

// only returns the DSN of the i-th host.
func (d *mysqlDSN) only(i int) *mysqlDSN {
	one := *d
	one.addrs, one.keys = d.addrs[i:i+1:i+1], nil
	return &one
}

// readOnly returns the text for a replica's connections: without autocommit, for
// with it off a connection would serve one snapshot for as long as it lives.
func (d *mysqlDSN) readOnly() string {
	one := *d
	one.params = slices.DeleteFunc(slices.Clone(d.params), func(p string) bool {
		name, _, _ := strings.Cut(p, "=")
		return sysvar(name) == "autocommit"
	})
	return one.String()
}

func (d *mysqlDSN) flag(name string) bool {
	for _, p := range d.params {
		if k, v, _ := strings.Cut(p, "="); k == name {
			return v == "1" || v == "true" || v == "TRUE" || v == "True"
		}
	}
	return false
}

// check lets go-sql-driver/mysql read the text of one host, where it will be the one
// to use it. It says what it refuses, but not under which key; we find that out.
func (d *mysqlDSN) check(driver string) error {
	if driver != driverMySQL {
		return nil
	}
	_, err := mysql.ParseDSN(d.String())
	if err == nil {
		return nil
	}
	for _, p := range d.params {
		if _, e := mysql.ParseDSN("tcp(localhost:3306)/?" + p); e != nil {
			name, _, _ := strings.Cut(p, "=")
			return fmt.Errorf("replicated: parameter %s of the DSN: %w", shown(name), e)
		}
	}
	return fmt.Errorf("replicated: the DSN for %s: %w", d.addrs[0], err)
}

// parseMySQL reads a DSN with a host list.
func parseMySQL(dsn string) (Config, error) {
	d, err := splitMySQL(dsn)
	if err != nil {
		return Config{}, err
	}
	var cfg Config
	if err := setKeys(&cfg, d.keys); err != nil {
		return Config{}, err
	}
	if cfg.Driver == "" {
		cfg.Driver = driverMySQL
	}
	if dialectOfName(cfg.Driver) == classify.Postgres {
		return Config{}, fmt.Errorf("replicated: replicated.driver=%s speaks PostgreSQL, and the DSN is in MySQL's form", cfg.Driver)
	}
	if dialectOfName(cfg.Driver) == classify.Generic && !isTCP(d.net) && d.net != "unix" {
		return Config{}, fmt.Errorf("replicated: replicated.driver=%s does not tell a dialect, nor does the network of the host list: write replicated://%s?primary=…", cfg.Driver, escapeDriver(cfg.Driver))
	}
	for i, address := range d.addrs {
		one := d.only(i)
		if err := one.check(cfg.Driver); err != nil {
			return Config{}, err
		}
		cfg.Nodes = append(cfg.Nodes, Node{Address: address, DSN: one.String()})
	}
	return cfg, nil
}

// formatMySQL writes one DSN for nodes that differ in nothing but their address.
func formatMySQL(cfg *Config) (string, bool) {
	var all *mysqlDSN
	for _, n := range cfg.Nodes {
		d, err := splitMySQL(n.DSN)
		if err != nil {
			return "", false
		}
		if all == nil {
			all = d
			continue
		}
		if all.userinfo != d.userinfo || all.net != d.net || all.db != d.db || !slices.Equal(all.params, d.params) {
			return "", false
		}
		all.addrs = append(all.addrs, d.addrs...)
	}
	if all == nil {
		return "", false
	}
	for _, p := range keyParams(cfg) {
		all.params = append(all.params, p.key+"="+url.QueryEscape(p.value))
	}
	return all.String(), true
}
