package replicated

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitPairs reads key=value pairs as lib/pq does: values in single quotes may have
// blanks in them, and a backslash takes the next character as it is.
func splitPairs(s string) ([]param, error) {
	var pairs []param
	for {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			return pairs, nil
		}
		before, after, ok := strings.Cut(s, "=")
		name := strings.TrimRightFunc(before, unicode.IsSpace)
		if !ok || strings.ContainsFunc(name, unicode.IsSpace) {
			where := "at its beginning"
			if len(pairs) > 0 {
				where = "after the value of " + shown(pairs[len(pairs)-1].key)
			}
			return nil, fmt.Errorf("replicated: the DSN is no list of key=value pairs: a = is missing %s; a value with blanks has to stand in single quotes", where)
		}
		if name == "" || !plainName(name) {
			return nil, fmt.Errorf("replicated: bad key %s in the key=value pairs of the DSN", shown(name))
		}
		value, rest, err := cutValue(strings.TrimLeftFunc(after, unicode.IsSpace))
		if err != nil {
			return nil, fmt.Errorf("%w (of the key %s)", err, shown(name))
		}
		pairs = append(pairs, param{name, value})
		s = rest
	}
}

func cutValue(s string) (value, rest string, err error) {
	var b strings.Builder
	quoted := strings.HasPrefix(s, "'")
	if quoted {
		s = s[1:]
	}
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case quoted && r == '\'':
			return b.String(), s[1:], nil
		case !quoted && unicode.IsSpace(r):
			return b.String(), s, nil
		case r == '\\':
			s = s[1:]
			if s == "" {
				return "", "", errors.New("replicated: a backslash ends the value")
			}
			_, size = utf8.DecodeRuneInString(s)
		}
		b.WriteString(s[:size])
		s = s[size:]
	}
	if quoted {
		return "", "", errors.New("replicated: the closing quote is missing in the value")
	}
	return b.String(), "", nil
}

// splitPostgresURL reads a URL. net/url is not used: it knows one host and one port,
// and its errors show the text.
func splitPostgresURL(dsn string) (*postgresDSN, error) {
	d := &postgresDSN{}
	scheme, rest, _ := strings.Cut(dsn, "://")
	d.scheme = scheme + "://"
	if strings.Contains(rest, "#") {
		return nil, errors.New("replicated: the URL has a # in it: within the user, the password or a value it has to be written %23")
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority := rest
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, d.path = rest[:i], rest[i:]
	}
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		d.userinfo, hosts = authority[:at+1], authority[at+1:]
	} else if strings.Contains(d.path, "@") {
		// What we took for hosts is the beginning of a password.
		return nil, errors.New("replicated: the URL has an @ after the host list: in the password a / has to be written %2F, a ? %3F, and in the database name an @ %40")
	}
	if err := checkUserinfo(d.userinfo); err != nil {
		return nil, err
	}
	if _, err := url.PathUnescape(d.path); err != nil || strings.ContainsFunc(d.path, unicode.IsControl) {
		return nil, errors.New("replicated: the database name in the URL has a character that has to be escaped, such as % as %25")
	}
	pairs, err := splitQuery(query)
	if err != nil {
		return nil, err
	}
	lists, err := d.setParams(pairs)
	if err != nil {
		return nil, err
	}
	if hosts != "" {
		if lists.host != "" {
			return nil, errors.New("replicated: key \"host\" is given twice: hosts stand before the path of the URL already")
		}
		if lists.host, lists.port, err = urlHosts(hosts, lists.port); err != nil {
			return nil, err
		}
	}
	return d, d.setHosts(lists)
}

// checkUserinfo refuses what net/url would refuse, without showing it.
func checkUserinfo(s string) error {
	bad := func(r rune) bool {
		return r >= utf8.RuneSelf || r != '@' && !strings.ContainsRune("-._:~!$&'()*+,;=%", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if _, err := url.PathUnescape(s); err != nil || strings.ContainsFunc(s, bad) {
		return errors.New("replicated: the user or the password in the URL has a character that has to be percent-encoded, such as % as %25")
	}
	return nil
}

func splitQuery(query string) ([]param, error) {
	var pairs []param
	for piece := range strings.SplitSeq(query, "&") {
		if piece == "" {
			continue
		}
		k, v, ok := strings.Cut(piece, "=")
		name, kerr := url.QueryUnescape(k)
		value, verr := url.QueryUnescape(v)
		switch {
		case kerr != nil || !plainName(name) || name == "":
			return nil, fmt.Errorf("replicated: bad key %s in the query of the URL", shown(name))
		case !ok:
			return nil, noValue(name)
		case verr != nil || strings.Contains(v, ";"):
			return nil, fmt.Errorf("replicated: the value of %s has a character that has to be escaped: %% as %%25, ; as %%3B", shown(name))
		}
		pairs = append(pairs, param{name, value})
	}
	return pairs, nil
}

// urlHosts turns host:port,[v6]:port into lists as the key=value form has them.
// Where only some hosts have a port, lib/pq and libpq read the list differently
// unless the port is the default.
func urlHosts(list, ports string) (hostList, portList string, err error) {
	var hosts, own []string
	mixed := false
	for i, item := range splitHosts(list) {
		if item, err = url.PathUnescape(item); err != nil {
			return "", "", fmt.Errorf("replicated: item %d of the host list has a %% that begins no escape", i+1)
		}
		host, port := item, ""
		if i := strings.LastIndexByte(item, ':'); isSocket(item) && i >= 0 {
			host, port = item[:i], item[i+1:]
		} else if !isSocket(item) {
			if host, port, err = splitHostPort(item); err != nil {
				return "", "", err
			}
		}
		if strings.Contains(host, ",") {
			return "", "", fmt.Errorf("replicated: bad host %s in the host list: a host has no comma", shownHost(host))
		}
		hosts, own = append(hosts, host), append(own, port)
		mixed = mixed || (own[0] == "") != (port == "")
	}
	hostList = strings.Join(hosts, ",")
	if !slices.ContainsFunc(own, func(p string) bool { return p != "" }) {
		return hostList, ports, nil
	}
	if ports != "" {
		return "", "", errors.New("replicated: key \"port\" is given twice: ports stand in the host list already")
	}
	if mixed && slices.ContainsFunc(own, func(p string) bool { return p != "" && p != postgresPort }) {
		return "", "", fmt.Errorf("replicated: in the host list %s some hosts have a port and some have none: give each its port, or one for all as ?port=", hostList)
	}
	return hostList, strings.Join(own, ","), nil
}
