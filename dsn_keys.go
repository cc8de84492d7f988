package replicated

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// keyPrefix begins every key of ours. It is compared without regard to case: a
// key that slips through is taken for a custom setting by PostgreSQL, silently.
const keyPrefix = "replicated."

// param is a key and its decoded value, as they stand in a DSN.
type param struct{ key, value string }

// key is one replicated.* key of the DSN and the field of [Config] behind it.
type key struct {
	name    string                     // without the prefix
	accepts string                     // what a good value looks like, for errors
	set     func(*Config, string) bool // false: a bad value
	get     func(*Config) string       // "" for the default, which is not written
	valid   func(*Config) bool         // whether the field holds what the key could say
	fill    func(*Config)              // put the default where nothing was said
}

// zeroMeaning tells what a written 0 means.
type zeroMeaning int

const (
	zeroRefused zeroMeaning = iota // there is no such thing
	zeroIsOff                      // off, which a Config says with a negative value
	zeroIsZero                     // off, which is the default
)

// keys are all keys, in the order in which FormatDSN writes them.
var keys = []key{
	{
		name: "driver", accepts: "mysql, postgres, or the name of a registered driver",
		set:   func(c *Config, v string) bool { c.Driver = v; return v != "" && !ourName(v) },
		get:   func(c *Config) string { return c.Driver },
		valid: func(c *Config) bool { return !ourName(c.Driver) },
		fill:  func(*Config) {},
	},
	enumKey("topology", topologyNames, func(c *Config) *TopologyMode { return &c.Topology }),
	enumKey("reads", readsNames, func(c *Config) *ReadsMode { return &c.Reads }),
	enumKey("consistency", consistencyNames, func(c *Config) *Consistency { return &c.Consistency }),
	enumKey("scope", scopeNames, func(c *Config) *Scope { return &c.Scope }),
	durationKey("max_lag", 5*time.Second, zeroRefused, func(c *Config) *time.Duration { return &c.MaxLag }),
	durationKey("max_blind", 60*time.Second, zeroIsOff, func(c *Config) *time.Duration { return &c.MaxBlind }),
	durationKey("wait", 0, zeroIsZero, func(c *Config) *time.Duration { return &c.Wait }),
	enumKey("tracker", trackerNames, func(c *Config) *TrackerMode { return &c.Tracker }),
	{
		name: "heartbeat_table", accepts: "table or schema.table, of letters, digits, _ and $",
		set:   func(c *Config, v string) bool { c.HeartbeatTable = v; return v != "" && tableWord(v) },
		get:   func(c *Config) string { return c.HeartbeatTable },
		valid: func(c *Config) bool { return tableWord(c.HeartbeatTable) },
		fill: func(c *Config) {
			if c.HeartbeatTable == "" {
				c.HeartbeatTable = "replicated_heartbeat"
			}
		},
	},
	durationKey("sticky", 5*time.Second, zeroIsOff, func(c *Config) *time.Duration { return &c.Sticky }),
	enumKey("readonly_tx", readOnlyTxNames, func(c *Config) *ReadOnlyTxMode { return &c.ReadOnlyTx }),
	enumKey("balance", balanceNames, func(c *Config) *BalanceMode { return &c.Balance }),
	nameKey("zone", func(c *Config) *string { return &c.Zone }),
	durationKey("connect_timeout", 2*time.Second, zeroIsOff, func(c *Config) *time.Duration { return &c.ConnectTimeout }),
	countKey("breaker_failures", 3, zeroRefused, func(c *Config) *int { return &c.BreakerFailures }),
	durationKey("breaker_open", time.Second, zeroRefused, func(c *Config) *time.Duration { return &c.BreakerOpen }),
	countKey("stmt_cache", 0, zeroIsOff, func(c *Config) *int { return &c.StmtCache }),
	countKey("replica_max_idle", 8, zeroIsOff, func(c *Config) *int { return &c.ReplicaMaxIdle }),
	durationKey("replica_max_lifetime", 5*time.Minute, zeroIsOff, func(c *Config) *time.Duration { return &c.ReplicaMaxLifetime }),
	durationKey("replica_max_idle_time", time.Minute, zeroIsOff, func(c *Config) *time.Duration { return &c.ReplicaMaxIdleTime }),
	enumKey("primary_down", primaryDownNames, func(c *Config) *PrimaryDownMode { return &c.PrimaryDown }),
	durationKey("primary_wait", 5*time.Second, zeroIsOff, func(c *Config) *time.Duration { return &c.PrimaryWait }),
	countKey("primary_read_limit", 0, zeroIsZero, func(c *Config) *int { return &c.PrimaryReadLimit }),
	functionsKey("read_functions", func(c *Config) *[]string { return &c.ReadFunctions }),
	functionsKey("write_functions", func(c *Config) *[]string { return &c.WriteFunctions }),
	nameKey("cluster", func(c *Config) *string { return &c.ClusterName }),
}

func nameKey(name string, field func(*Config) *string) key {
	return key{
		name: name, accepts: "1 to 64 letters, digits, dots, dashes or underscores",
		set:   func(c *Config, v string) bool { *field(c) = v; return v != "" && plainName(v) },
		get:   func(c *Config) string { return *field(c) },
		valid: func(c *Config) bool { return plainName(*field(c)) },
		fill:  func(*Config) {},
	}
}

func enumKey[E ~uint8](name string, names []string, field func(*Config) *E) key {
	return key{
		name:    name,
		accepts: strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1],
		set: func(c *Config, v string) bool {
			for i, n := range names {
				if n == v {
					*field(c) = E(i)
					return true
				}
			}
			return false
		},
		get: func(c *Config) string {
			if e := *field(c); e != 0 {
				return names[e]
			}
			return ""
		},
		valid: func(c *Config) bool { return int(*field(c)) < len(names) },
		fill:  func(*Config) {},
	}
}

func functionsKey(name string, field func(*Config) *[]string) key {
	valid := func(names []string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !classify.PlainName(n) })
	}
	return key{
		name:    name,
		accepts: "names of functions, or schema.function, with commas between",
		set: func(c *Config, v string) bool {
			names := strings.Split(v, ",")
			for i := range names {
				names[i] = strings.TrimSpace(names[i])
			}
			*field(c) = names
			return valid(names)
		},
		get:   func(c *Config) string { return strings.Join(*field(c), ",") },
		valid: func(c *Config) bool { return valid(*field(c)) },
		fill:  func(c *Config) { *field(c) = slices.Clone(*field(c)) },
	}
}

func durationKey(name string, def time.Duration, zero zeroMeaning, field func(*Config) *time.Duration) key {
	k := numberKey(name, def, zero, field,
		func(v string) (time.Duration, bool) { d, err := time.ParseDuration(v); return d, err == nil },
		time.Duration.String)
	k.accepts = "a duration with its unit, such as 500ms or 2s" + k.accepts
	return k
}

func countKey(name string, def int, zero zeroMeaning, field func(*Config) *int) key {
	k := numberKey(name, def, zero, field,
		func(v string) (int, bool) { n, err := strconv.Atoi(v); return n, err == nil && n <= math.MaxInt32 },
		strconv.Itoa)
	k.accepts = "a whole number" + k.accepts
	return k
}

func numberKey[T int | time.Duration](name string, def T, zero zeroMeaning, field func(*Config) *T, parse func(string) (T, bool), format func(T) string) key {
	return key{
		name:    name,
		accepts: map[zeroMeaning]string{zeroRefused: ", above 0", zeroIsOff: ", or 0 for none", zeroIsZero: ", or 0 for none"}[zero],
		set: func(c *Config, v string) bool {
			n, ok := parse(v)
			switch {
			case !ok || n < 0 || n == 0 && zero == zeroRefused:
				return false
			case n == 0 && zero == zeroIsOff:
				n = -1
			}
			*field(c) = n
			return true
		},
		get: func(c *Config) string {
			switch n := *field(c); {
			case n == 0:
				return ""
			case n < 0:
				return "0"
			default:
				return format(n)
			}
		},
		valid: func(c *Config) bool { return *field(c) >= 0 || zero == zeroIsOff },
		fill: func(c *Config) {
			switch n := field(c); {
			case *n == 0:
				*n = def
			case *n < 0:
				*n = 0
			}
		},
	}
}

// isOurs reports whether a key of a DSN is, or is meant to be, one of ours.
func isOurs(name string) bool {
	return len(name) >= len(keyPrefix) && strings.EqualFold(name[:len(keyPrefix)], keyPrefix)
}

// setKeys sets the fields of c that the parameters name.
func setKeys(c *Config, params []param) error {
	seen := make(map[string]bool, len(params))
	for _, p := range params {
		if seen[p.key] {
			return fmt.Errorf("replicated: key %s is given twice", shown(p.key))
		}
		seen[p.key] = true
		k := keyNamed(p.key)
		if k == nil {
			return unknownKey(p.key)
		}
		if !k.set(c, p.value) {
			return fmt.Errorf("replicated: bad value %s of %s: it accepts %s", shownValue(p.value), p.key, k.accepts)
		}
	}
	return nil
}

func keyNamed(name string) *key {
	for i := range keys {
		if keyPrefix+keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

// checkKeys refuses field values that no key could have set.
func checkKeys(c *Config) error {
	for _, k := range keys {
		if !k.valid(c) {
			return fmt.Errorf("replicated: bad value in Config for %s%s: it accepts %s", keyPrefix, k.name, k.accepts)
		}
	}
	return nil
}

// keyParams returns the parameters that say what c says, without the driver.
func keyParams(c *Config) []param {
	var params []param
	for _, k := range keys {
		if v := k.get(c); v != "" && k.name != "driver" {
			params = append(params, param{keyPrefix + k.name, v})
		}
	}
	return params
}

func unknownKey(name string) error {
	best, distance := "", 4 // further off is no misspelling
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
		if d := editDistance(strings.ToLower(name[len(keyPrefix):]), k.name); d < distance {
			best, distance = k.name, d
		}
	}
	if best != "" {
		return fmt.Errorf("replicated: unknown key %s: did you mean %q?", shown(name), keyPrefix+best)
	}
	return fmt.Errorf("replicated: unknown key %s: after %q follows one of %s", shown(name), keyPrefix, strings.Join(names, ", "))
}

// editDistance is the Levenshtein distance of two short words, in bytes.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			substituted := diagonal
			if a[i-1] != b[j-1] {
				substituted++
			}
			diagonal = row[j]
			row[j] = min(substituted, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// shown quotes a key for an error. What does not look like a key is not shown: in
// a malformed DSN it may be a piece of the password.
func shown(name string) string {
	if !plainName(name) {
		return `"…"`
	}
	return strconv.Quote(name)
}

// noValue is the error for a key without "=". One that nobody knows is not shown: its
// "=" may be what is missing, and then a password may be in it.
func noValue(name string) error {
	if !isOurs(name) && !slices.Contains(conninfoKeys, name) && name != "primary" && name != "replica" {
		return errors.New("replicated: a key has no value: each is followed by = and a value")
	}
	return fmt.Errorf("replicated: key %s has no value", shown(name))
}

// shownValue quotes the value of one of our keys for an error, unless it looks as
// if a separator were missing and another parameter, such as a password, were in it.
func shownValue(v string) string {
	if len(v) > 32 || strings.ContainsAny(v, "=@:") {
		return `"…"`
	}
	return strconv.Quote(v)
}

// plainName reports whether s has only letters, digits, dots, dashes and
// underscores, 64 at most.
func plainName(s string) bool {
	for _, r := range s {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-' || r == '_') {
			return false
		}
	}
	return len(s) <= 64
}

// tableWord reports whether s can name a table without being quoted, with a schema
// or without; or is empty.
func tableWord(s string) bool {
	schema, table, two := strings.Cut(s, ".")
	if two && (schema == "" || table == "") {
		return false
	}
	for _, r := range schema + table {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '$' || r == '_') {
			return false
		}
	}
	return true
}

// ourName reports whether a driver name is ours: a node reached through ourselves
// would be a cluster in a cluster.
func ourName(driver string) bool {
	return driver == DriverName || driver == DriverNameMySQL || driver == DriverNamePostgres
}
