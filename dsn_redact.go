package replicated

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// errorPrefix begins every error of ours. No password blanks it out.
const errorPrefix = "replicated: "

// redact returns err, or, where its message has a password of one of the DSNs in
// it, an error with the password blanked out and no chain to the original.
func redact(err error, dsns ...string) error {
	if err == nil {
		return nil
	}
	msg, ours := strings.CutPrefix(err.Error(), errorPrefix)
	for _, dsn := range dsns {
		if len(dsn) > 8 { // else it is a word, or has none that could be a secret
			msg = strings.ReplaceAll(msg, dsn, "…")
		}
		for _, secret := range secretsOf(dsn) {
			msg = blank(msg, secret)
		}
	}
	if ours {
		msg = errorPrefix + msg
	}
	if msg == err.Error() {
		return err
	}
	return errors.New(msg)
}

// blank replaces a secret. A very short one is replaced only where it stands
// alone: a password of "e" is not betrayed by a word that has an e in it.
func blank(msg, secret string) string {
	if len(secret) > 3 {
		return strings.ReplaceAll(msg, secret, "xxxxx")
	}
	word := func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c >= 0x80
	}
	var b strings.Builder
	for i := 0; i < len(msg); {
		end := i + len(secret)
		if strings.HasPrefix(msg[i:], secret) && (i == 0 || !word(msg[i-1])) && (end == len(msg) || !word(msg[end])) {
			b.WriteString("xxxxx")
			i = end
			continue
		}
		b.WriteByte(msg[i])
		i++
	}
	return b.String()
}

// secretsOf lists what may be a password in a DSN of any grammar, well formed or
// not, the longest first.
func secretsOf(dsn string) []string {
	var secrets []string
	add := func(s string) {
		for _, t := range []string{s, strings.Trim(s, `'"`)} {
			secrets = append(secrets, t)
			if u, err := url.PathUnescape(t); err == nil {
				secrets = append(secrets, u)
			}
		}
	}
	rest := dsn
	if _, after, ok := strings.Cut(dsn, "://"); ok {
		rest = after
	}
	if colon := strings.IndexByte(rest, ':'); colon >= 0 {
		for i := colon + 1; i < len(rest); i++ {
			if rest[i] == '@' {
				add(rest[colon+1 : i])
			}
		}
	}
	lower := strings.ToLower(dsn)
	for _, name := range []string{"password", "passwd", "pwd"} {
		for at := 0; ; {
			i := strings.Index(lower[at:], name)
			if i < 0 || len(lower) != len(dsn) {
				break
			}
			at += i + len(name)
			value, ok := strings.CutPrefix(strings.TrimLeft(dsn[at:], " "), "=")
			if !ok {
				continue
			}
			value = strings.TrimLeft(value, " ")
			if end := strings.IndexAny(value, "&;"); end >= 0 {
				add(value[:end])
			}
			if end := strings.IndexFunc(value, unicode.IsSpace); end >= 0 {
				add(value[:end])
			}
			if strings.HasPrefix(value, "'") {
				if end := strings.IndexByte(value[1:], '\''); end >= 0 {
					add(value[1 : 1+end])
				}
			}
			add(value)
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return slices.DeleteFunc(slices.Compact(secrets), func(s string) bool { return s == "" })
}
