package classify

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sqlreplicated/replicated/internal/lex"
)

// Name is a relation as a text names it: without quotes, and in the one form that
// all spellings of it have in common.
//
// PostgreSQL's names are as its catalog has them: in small letters unless quoted,
// cut at 63 bytes. MySQL's and MariaDB's are in small letters, all of them, since
// it is a setting of the server whether two names that differ by case are two.
type Name struct {
	// Schema is the schema, or MySQL's database; "" where none was written, and
	// then the relation may be in any of them. A PostgreSQL database before the
	// schema is left out: it can only be the current one.
	Schema string
	Table  string
}

// String returns the name with its schema before it, if it has one, unquoted.
func (n Name) String() string {
	if n.Schema == "" {
		return n.Table
	}
	return n.Schema + "." + n.Table
}

// Overlaps reports whether both may be the same relation.
func (n Name) Overlaps(o Name) bool {
	return n.Table == o.Table && (n.Schema == o.Schema || n.Schema == "" || o.Schema == "")
}

func overlaps(list []Name, n Name) bool { return slices.ContainsFunc(list, n.Overlaps) }

// CatalogName is the name of a relation that d's catalog has as schema and table.
func CatalogName(d Dialect, schema, table string) Name {
	if d == Postgres {
		return Name{schema, table}
	}
	return Name{strings.ToLower(schema), strings.ToLower(table)}
}

// system reports whether the relation is one of the server's own, that tells of
// others, or changes without being written.
func (n Name) system(d Dialect) bool {
	if d == Postgres {
		return strings.HasPrefix(n.Schema, "pg_") || n.Schema == "information_schema" || strings.HasPrefix(n.Table, "pg_")
	}
	switch n.Schema {
	case "mysql", "sys", "information_schema", "performance_schema":
		return true
	}
	return false
}

// nameSet is a list without repetitions.
type nameSet struct {
	names []Name
	index map[Name]struct{}
}

// smallSet is up to how many names looking through the list is as good as an index.
const smallSet = 8

func (s *nameSet) has(n Name) bool {
	if s.index == nil {
		return slices.Contains(s.names, n)
	}
	_, ok := s.index[n]
	return ok
}

func (s *nameSet) add(n Name) {
	if s.has(n) {
		return
	}
	s.names = append(s.names, n)
	switch {
	case s.index != nil:
		s.index[n] = struct{}{}
	case len(s.names) > smallSet:
		s.index = make(map[Name]struct{}, 2*len(s.names))
		for _, have := range s.names {
			s.index[have] = struct{}{}
		}
	}
}

// maxPostgresName is how many bytes of a name PostgreSQL keeps (NAMEDATALEN - 1).
const maxPostgresName = 63

// part returns what one part of a name is to the server.
func (r *relationReader) part(t lexeme) string {
	s := r.lx.Slice(t.start, t.end)
	if t.kind == lex.Name || t.kind == lex.Quoted {
		if q := r.lx.Slice(t.start-1, t.start); strings.Contains(s, q) {
			s = strings.ReplaceAll(s, q+q, q)
		}
	} else if r.pg {
		s = string(appendFold(make([]byte, 0, len(s)), s))
	}
	if !r.pg {
		return strings.ToLower(s)
	}
	if len(s) > maxPostgresName {
		n := maxPostgresName
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return s
}
