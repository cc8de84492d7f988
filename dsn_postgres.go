package replicated

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// postgresDSN is a connection string of PostgreSQL, as URL or as key=value pairs.
//
// The hosts are split before lib/pq sees the text: it takes "h1:5432,h2:5433" in
// a URL for a host named "h1:5432", and refuses lists of IPv6 addresses.
type postgresDSN struct {
	scheme   string // "postgres://", "postgresql://", or "" for key=value pairs
	userinfo string // URL: as written, with the "@", or empty
	path     string // URL: as written, with the "/", or empty
	hosts    []postgresHost
	params   []param // native ones in their order, without the hosts
	keys     []param // ours
}

// postgresHost is where one server is. Either host or hostaddr is not empty.
type postgresHost struct {
	host     string // a name, an address, a directory of sockets, or @name
	hostaddr string // the address behind the name, which spares the look-up
	port     string
}

const postgresPort = "5432"

// conninfoKeys are the keywords of libpq by which key=value pairs are told from a
// DSN of MySQL.
var conninfoKeys = []string{
	"host", "hostaddr", "port", "dbname", "user", "password", "passfile", "sslmode", "connect_timeout",
	"application_name", "options", "service", "target_session_attrs", "load_balance_hosts",
	"sslrootcert", "sslcert", "sslkey",
}

func hasPostgresScheme(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// looksPostgres reports whether a DSN has one of PostgreSQL's two forms. Pairs are
// recognised by their first key, else by any known key if all of the text is
// pairs, so that a mistake further on is reported in terms of the right form.
func looksPostgres(dsn string) bool {
	if hasPostgresScheme(dsn) {
		return true
	}
	first, _, ok := strings.Cut(dsn, "=")
	first = strings.TrimSpace(first)
	if !ok || first == "" || !plainName(first) {
		return false
	}
	if isOurs(first) || slices.Contains(conninfoKeys, first) {
		return true
	}
	pairs, err := splitPairs(dsn)
	return err == nil && slices.ContainsFunc(pairs, func(p param) bool { return slices.Contains(conninfoKeys, p.key) })
}

// splitPostgres reads a connection string with one host or several.
func splitPostgres(dsn string) (*postgresDSN, error) {
	if hasPostgresScheme(dsn) {
		return splitPostgresURL(dsn)
	}
	pairs, err := splitPairs(dsn)
	if err != nil {
		return nil, err
	}
	d := &postgresDSN{}
	lists, err := d.setParams(pairs)
	if err != nil {
		return nil, err
	}
	return d, d.setHosts(lists)
}

// hostLists are the values of host=, hostaddr= and port=.
type hostLists struct{ host, hostaddr, port string }

// setParams sorts parameters into hosts, ours and native ones.
func (d *postgresDSN) setParams(pairs []param) (hostLists, error) {
	var lists hostLists
	seen := make(map[string]bool)
	for _, p := range pairs {
		if isOurs(p.key) {
			d.keys = append(d.keys, p)
			continue
		}
		if seen[p.key] {
			return lists, fmt.Errorf("replicated: key %s is given twice", shown(p.key))
		}
		seen[p.key] = true
		switch p.key {
		case "host":
			lists.host = p.value
		case "hostaddr":
			lists.hostaddr = p.value
		case "port":
			lists.port = p.value
		default:
			keep, err := postgresParam(p)
			if err != nil {
				return lists, err
			}
			if keep {
				d.params = append(d.params, p)
			}
		}
	}
	return lists, nil
}

// postgresParam refuses the parameters that would decide what is ours to decide, and
// drops those of them that ask for nothing.
func postgresParam(p param) (keep bool, err error) {
	switch name := strings.ToLower(p.key); {
	case name == "target_session_attrs" && p.value == "any", name == "load_balance_hosts" && p.value == "disable":
		return false, nil
	case name == "target_session_attrs", name == "load_balance_hosts":
		return false, fmt.Errorf("replicated: remove %s from the DSN: the first host is the primary, and reads are spread by this driver", name)
	case name == "transaction_read_only":
		return false, fmt.Errorf("replicated: remove %s from the DSN: use sql.TxOptions.ReadOnly, or WithReadOnly", name)
	}
	return true, nil
}

func (d *postgresDSN) setHosts(l hostLists) error {
	if l.host == "" && l.hostaddr == "" {
		return errors.New("replicated: empty host list: the DSN has no host (PGHOST is not used, since it cannot tell a primary from a replica)")
	}
	var hosts, addrs []string
	if l.host != "" {
		hosts = strings.Split(l.host, ",")
	}
	if l.hostaddr != "" {
		addrs = strings.Split(l.hostaddr, ",")
	}
	n := max(len(hosts), len(addrs))
	if len(hosts) > 0 && len(addrs) > 0 && len(hosts) != len(addrs) {
		return fmt.Errorf("replicated: host has %d items and hostaddr %d: they have to match", len(hosts), len(addrs))
	}
	ports := strings.Split(l.port, ",")
	if len(ports) > 1 && len(ports) != n {
		return fmt.Errorf("replicated: port has %d items for %d hosts: give one for all, or one for each", len(ports), n)
	}
	for i := range n {
		h := postgresHost{port: ports[min(i, len(ports)-1)]}
		if h.port == "" {
			h.port = postgresPort
		}
		if len(hosts) > 0 {
			h.host = hosts[i]
		}
		if len(addrs) > 0 {
			h.hostaddr = addrs[i]
		}
		if err := h.check(); err != nil {
			return err
		}
		d.hosts = append(d.hosts, h)
	}
	return nil
}

func isSocket(host string) bool { return strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") }

func (h *postgresHost) check() error {
	if _, err := parsePort(h.port, h.name()); err != nil {
		return err
	}
	if h.hostaddr != "" {
		if !isIP(h.hostaddr) {
			return fmt.Errorf("replicated: bad hostaddr %s in the host list: it accepts an IPv4 or IPv6 address", shownHost(h.hostaddr))
		}
		if h.host == "" {
			return nil
		}
	}
	if isSocket(h.host) {
		return nil
	}
	if inside, ok := strings.CutPrefix(h.host, "["); ok {
		h.host = strings.TrimSuffix(inside, "]")
	}
	return checkHost(h.host)
}

// name is the host as the DSN has it.
func (h postgresHost) name() string {
	if h.host == "" {
		return h.hostaddr
	}
	return h.host
}

// address is host:port, or the path of the socket.
func (h postgresHost) address() string {
	if isSocket(h.host) && h.hostaddr == "" {
		return path.Join(h.host, ".s.PGSQL."+h.port)
	}
	return net.JoinHostPort(h.name(), h.port)
}

func (d *postgresDSN) addresses() []string {
	addrs := make([]string, len(d.hosts))
	for i, h := range d.hosts {
		addrs[i] = h.address()
	}
	return addrs
}

func (d *postgresDSN) dialect() classify.Dialect { return classify.Postgres }
func (d *postgresDSN) ours() []param             { return d.keys }

// only returns the DSN of the i-th host.
func (d *postgresDSN) only(i int) *postgresDSN {
	one := *d
	one.hosts, one.keys = d.hosts[i:i+1:i+1], nil
	return &one
}

// String returns the text without our keys, in the form it was read from. The port
// is always written: without it PGPORT would decide.
func (d *postgresDSN) String() string { return d.text(d.params) }

// readOnly returns the text for a replica's connections. They are made read-only by
// a start-up parameter and never by SET: through a pooler a SET reaches the
// sessions of other applications.
func (d *postgresDSN) readOnly() string {
	params := slices.DeleteFunc(slices.Clone(d.params), func(p param) bool { return strings.EqualFold(p.key, readOnlyParam) })
	return d.text(append(params, param{readOnlyParam, "on"}))
}

const readOnlyParam = "default_transaction_read_only"

func (d *postgresDSN) text(params []param) string {
	if d.scheme == "" {
		pairs := make([]string, 0, len(params)+3)
		for _, p := range append(d.hostParams(), params...) {
			pairs = append(pairs, p.key+"="+quotePair(p.value))
		}
		return strings.Join(pairs, " ")
	}
	authority := make([]string, len(d.hosts))
	for i, h := range d.hosts {
		if !h.inURL() {
			authority, params = nil, append(d.hostParams(), params...)
			break
		}
		authority[i] = h.address()
	}
	s := d.scheme + d.userinfo + strings.Join(authority, ",") + d.path
	for i, p := range params {
		s += map[bool]string{true: "?", false: "&"}[i == 0] + p.key + "=" + escapeQuery(p.value)
	}
	return s
}

// inURL reports whether net/url takes the host as the authority of a URL.
func (h postgresHost) inURL() bool {
	if h.hostaddr != "" || isSocket(h.host) || strings.Contains(h.host, "%") {
		return false
	}
	return !strings.ContainsFunc(h.host, func(r rune) bool { return r >= utf8.RuneSelf })
}

// hostParams returns the hosts as parameters, one for all where that says it all.
func (d *postgresDSN) hostParams() []param {
	var hosts, addrs, ports []string
	for _, h := range d.hosts {
		hosts, addrs, ports = append(hosts, h.host), append(addrs, h.hostaddr), append(ports, h.port)
	}
	empty := func(s string) bool { return s == "" }
	var params []param
	if slices.ContainsFunc(hosts, func(s string) bool { return !empty(s) }) {
		params = append(params, param{"host", strings.Join(hosts, ",")})
	}
	if slices.ContainsFunc(addrs, func(s string) bool { return !empty(s) }) {
		params = append(params, param{"hostaddr", strings.Join(addrs, ",")})
	}
	if len(slices.Compact(slices.Clone(ports))) == 1 {
		ports = ports[:1]
	}
	return append(params, param{"port", strings.Join(ports, ",")})
}

func quotePair(v string) string {
	if v != "" && !strings.ContainsFunc(v, func(r rune) bool { return unicode.IsSpace(r) || r == '\'' || r == '\\' }) {
		return v
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
}

// escapeQuery escapes a blank as %20: not every reader of such a URL knows the plus sign.
func escapeQuery(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") }

func (d *postgresDSN) flag(name string) bool {
	for _, p := range d.params {
		if p.key == name {
			return slices.Contains([]string{"1", "yes", "true", "on"}, strings.ToLower(p.value))
		}
	}
	return false
}

// check lets lib/pq read the text of one host, where it will be the one to use it.
func (d *postgresDSN) check(driver string) error {
	if driver != driverPostgres {
		return nil
	}
	_, err := d.config()
	return err
}

// config returns lib/pq's configuration for the first host. What the environment or
// a service file says about hosts and their choice is overwritten; the rest of
// either counts as it does for lib/pq.
func (d *postgresDSN) config() (pq.Config, error) {
	h := d.hosts[0]
	cfg, err := pq.NewConfig(d.String())
	if err != nil {
		err = fmt.Errorf("replicated: the DSN for %s: %w", h.address(), err)
		for _, name := range []string{"PGHOST", "PGHOSTADDR", "PGPORT"} {
			if strings.Contains(os.Getenv(name), ",") {
				err = fmt.Errorf("%w (the environment variable %s has a list: unset it)", err, name)
			}
		}
		return pq.Config{}, err
	}
	cfg.Host, cfg.Hostaddr, cfg.Multi = h.host, netip.Addr{}, nil
	if h.hostaddr != "" {
		if cfg.Hostaddr, err = netip.ParseAddr(h.hostaddr); err != nil {
			return pq.Config{}, fmt.Errorf("replicated: bad hostaddr: %w", err)
		}
	}
	if h.host == "" {
		cfg.Host = "localhost" // lib/pq's default, the name in the certificate
	}
	port, err := parsePort(h.port, h.name())
	if err != nil {
		return pq.Config{}, err
	}
	cfg.Port = port
	cfg.TargetSessionAttrs, cfg.LoadBalanceHosts = pq.TargetSessionAttrsAny, pq.LoadBalanceHostsDisable
	if isSocket(h.host) && h.hostaddr == "" {
		cfg.SSLMode = pq.SSLModeDisable // as lib/pq does, had it not looked at PGHOSTADDR
	}
	return cfg, nil
}

// parsePostgres reads a connection string with a host list.
func parsePostgres(dsn string) (Config, error) {
	d, err := splitPostgres(dsn)
	if err != nil {
		return Config{}, err
	}
	var cfg Config
	if err := setKeys(&cfg, d.keys); err != nil {
		return Config{}, err
	}
	if cfg.Driver == "" {
		cfg.Driver = driverPostgres
	}
	if dialectOfName(cfg.Driver) == classify.AnyMySQL {
		return Config{}, fmt.Errorf("replicated: replicated.driver=%s speaks MySQL, and the DSN is in PostgreSQL's form", cfg.Driver)
	}
	for i, h := range d.hosts {
		one := d.only(i)
		if err := one.check(cfg.Driver); err != nil {
			return Config{}, err
		}
		cfg.Nodes = append(cfg.Nodes, Node{Address: h.address(), DSN: one.String()})
	}
	return cfg, nil
}

// formatPostgres writes one DSN for nodes that differ in nothing but their host.
func formatPostgres(cfg *Config) (string, bool) {
	var all *postgresDSN
	for _, n := range cfg.Nodes {
		d, err := splitPostgres(n.DSN)
		if err != nil {
			return "", false
		}
		if all == nil {
			all = d
			continue
		}
		if all.scheme != d.scheme || all.userinfo != d.userinfo || all.path != d.path || !slices.Equal(all.params, d.params) {
			return "", false
		}
		all.hosts = append(all.hosts, d.hosts...)
	}
	if all == nil {
		return "", false
	}
	return all.text(append(slices.Clone(all.params), keyParams(cfg)...)), true
}
