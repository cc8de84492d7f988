package replicated

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// schemeNodes begins the form that has a DSN per node, for any registered driver:
//
//	replicated://driver?primary=<DSN>&replica=<DSN>&replica=<DSN>&replicated.reads=auto
const schemeNodes = "replicated://"

// parseNodes reads the form with a DSN per node. The DSNs of drivers other than our
// two are taken as they are: nobody but the driver knows their grammar.
func parseNodes(dsn string) (Config, error) {
	name, query, _ := strings.Cut(strings.TrimPrefix(dsn, schemeNodes), "?")
	name = strings.TrimSuffix(name, "/")
	driver, err := url.PathUnescape(name)
	if err != nil || strings.ContainsAny(name, "/@:#") {
		// A user and password may stand here: it is not shown.
		return Config{}, errors.New("replicated: between replicated:// and the ? stands the name of a registered driver alone; hosts and passwords belong to primary= and replica=")
	}
	if driver == "" {
		return Config{}, errors.New("replicated: the driver's name is missing after replicated://, as in replicated://pgx?primary=…")
	}
	if ourName(driver) {
		return Config{}, fmt.Errorf("replicated: replicated://%s: a cluster's nodes are not reached through this driver itself; name the one below it", driver)
	}
	cfg := Config{Driver: driver}
	var ours []param
	for piece := range strings.SplitSeq(query, "&") {
		if piece == "" {
			continue
		}
		key, value, ok := strings.Cut(piece, "=")
		v, err := url.QueryUnescape(value)
		switch {
		case !ok:
			return Config{}, noValue(key)
		case err != nil:
			return Config{}, fmt.Errorf("replicated: the value of %s has a %% that begins no escape: write %%25", shown(key))
		case isOurs(key):
			ours = append(ours, param{key, v})
		case key == "primary" && len(cfg.Nodes) > 0:
			return Config{}, errors.New("replicated: primary= has to be given once, before every replica=")
		case key == "replica" && len(cfg.Nodes) == 0:
			return Config{}, errors.New("replicated: replica= stands before primary=: name the primary first")
		case key == "primary", key == "replica":
			if strings.TrimSpace(v) == "" {
				return Config{}, fmt.Errorf("replicated: %s= has no DSN", key)
			}
			cfg.Nodes = append(cfg.Nodes, Node{DSN: v})
		default:
			return Config{}, fmt.Errorf("replicated: unknown key %s after replicated://%s: it takes primary, replica and keys that begin with %s; a & within a node's DSN has to be written %%26", shown(key), driver, keyPrefix)
		}
	}
	for _, p := range ours {
		if p.key == keyPrefix+"driver" {
			return Config{}, fmt.Errorf("replicated: %s is given twice: the driver already stands after %s", p.key, schemeNodes)
		}
	}
	if err := setKeys(&cfg, ours); err != nil {
		return Config{}, err
	}
	for i := range cfg.Nodes {
		n := &cfg.Nodes[i]
		d, err := parseNode(driver, n.DSN)
		if err != nil {
			return Config{}, redact(nodeRefused(i, err), n.DSN)
		}
		if d == nil {
			continue
		}
		n.Address = d.addresses()[0]
		if driver == driverMySQL || driver == driverPostgres {
			n.DSN = d.String()
		}
	}
	return cfg, nil
}

// formatNodes writes the form with a DSN per node.
func formatNodes(cfg *Config) string {
	pieces := make([]string, 0, len(cfg.Nodes))
	for i, n := range cfg.Nodes {
		role := "replica="
		if i == 0 {
			role = "primary="
		}
		pieces = append(pieces, role+url.QueryEscape(n.DSN))
	}
	for _, p := range keyParams(cfg) {
		pieces = append(pieces, p.key+"="+url.QueryEscape(p.value))
	}
	return schemeNodes + escapeDriver(cfg.Driver) + "?" + strings.Join(pieces, "&")
}

// escapeDriver escapes a driver's name to stand where a URL has its host.
func escapeDriver(name string) string {
	return strings.NewReplacer("@", "%40", ":", "%3A").Replace(url.PathEscape(name))
}
