package dialect

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// numVars is the number of variables that classify knows.
const numVars = 9

// setting says how one variable of the closed replay list is read.
type setting struct {
	v     classify.Vars
	exprs []string // SQL expressions that together hold the value
	names []string // of what they hold, for the assignment
}

// assignment is one part of a setting, to be given a value.
type assignment struct {
	v    classify.Vars
	name string
	cell
}

// Settings is a set of session variables and their values, as text of the
// database's own. It is an immutable value that can be compared with == and used
// as a key. The zero Settings sets nothing. Settings of different dialects must
// not be mixed.
type Settings struct {
	vars   classify.Vars
	values [numVars]string // encoded, see encodeCells
	sig    string          // made of the other two
}

// Vars returns the variables that have a value.
func (s Settings) Vars() classify.Vars { return s.vars }

// IsZero reports whether nothing is set.
func (s Settings) IsZero() bool { return s.vars == 0 }

// Signature returns a text that is equal for equal settings, "" for none. It
// holds the values: it is no text to show or to log.
func (s Settings) Signature() string { return s.sig }

// With returns s with the variables of t set as t has them: what a Conn has to
// remember after a further SET was read back.
func (s Settings) With(t Settings) Settings {
	for i := range numVars {
		if t.vars&(1<<i) != 0 {
			s.values[i] = t.values[i]
		}
	}
	s.vars |= t.vars
	return s.signed()
}

// signed returns s with its signature made.
func (s Settings) signed() Settings {
	var b strings.Builder
	for i := range numVars {
		if s.vars&(1<<i) != 0 {
			b.WriteString(strconv.Itoa(i))
			b.WriteString(strconv.Quote(s.values[i]))
		}
	}
	s.sig = b.String()
	return s
}

// Replays returns the variables that can be read back and applied. A statement
// that sets any other has to pin.
func (d *Dialect) Replays() classify.Vars {
	var all classify.Vars
	for _, s := range d.settings {
		all |= s.v
	}
	return all
}

// ReadSettings reads the present values of vars, in one query; in none if vars
// is empty. Inside a PostgreSQL transaction they are the transaction's, and a
// failed one refuses: read after its end.
func (d *Dialect) ReadSettings(ctx context.Context, conn driver.Conn, vars classify.Vars) (Settings, error) {
	if vars == 0 {
		return Settings{}, nil
	}
	if other := vars &^ d.Replays(); other != 0 {
		return Settings{}, fmt.Errorf("replicated: settings %v of %v are not replayed", other, d.Kind)
	}
	var exprs []string
	for _, s := range d.settings {
		if vars&s.v != 0 {
			exprs = append(exprs, s.exprs...)
		}
	}
	row, err := queryRow(ctx, conn, "SELECT "+strings.Join(exprs, ", "), len(exprs))
	if err != nil {
		return Settings{}, fmt.Errorf("replicated: reading session settings: %w", err)
	}
	out := Settings{vars: vars}
	for _, s := range d.settings {
		if vars&s.v != 0 {
			out.values[index(s.v)] = encodeCells(row[:len(s.exprs)])
			row = row[len(s.exprs):]
		}
	}
	return out.signed(), nil
}

// Change brings a replica connection from the settings now to the settings want.
// base holds the values with which the connection was opened, of all variables
// that have been changed on it since: a variable that now has and want has not
// goes back to them (DEFAULT or RESET would give the server's value, not the
// DSN's). A connection as it was opened has a zero now and a zero base.
//
// It returns the new now, which is want, and the new base; both must be kept
// with the connection and handed in the next time. After an error the connection
// is in no known state and must be closed. After success, statements prepared on
// it before may mean something else and must be prepared again.
//
// Round trips: none if nothing differs; one query before the first change of a
// variable, to record its value; one statement for the change; on MySQL one more
// if the database changes, for USE cannot stand in a SET. MySQL has no way back
// to having no database, so that fails.
func (d *Dialect) Change(ctx context.Context, conn driver.Conn, now, want, base Settings) (newNow, newBase Settings, err error) {
	if now == want {
		return now, base, nil
	}
	if unknown := want.vars &^ base.vars; unknown != 0 {
		more, err := d.ReadSettings(ctx, conn, unknown)
		if err != nil {
			return now, base, err
		}
		base = base.With(more)
	}
	if todo := d.difference(base.With(now), base.With(want)); len(todo) > 0 {
		if err := d.apply(ctx, conn, todo); err != nil {
			return now, base, fmt.Errorf("replicated: applying session settings: %w", err)
		}
	}
	return want, base, nil
}

// difference returns what has to be assigned to get from one to the other, which
// have the same variables.
func (d *Dialect) difference(from, to Settings) []assignment {
	var todo []assignment
	for _, s := range d.settings {
		i := index(s.v)
		if to.values[i] == from.values[i] {
			continue
		}
		for j, c := range decodeCells(to.values[i]) {
			todo = append(todo, assignment{v: s.v, name: s.names[j], cell: c})
		}
	}
	return todo
}

// index returns the place of a single variable.
func index(v classify.Vars) int { return bits.TrailingZeros16(uint16(v)) }

// encodeCells makes one string of the cells, one that says which are NULL. No
// value holds a NUL byte: neither server lets one into a variable or name.
func encodeCells(cells []cell) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteByte(0)
		}
		if c.null {
			b.WriteByte('N')
			continue
		}
		b.WriteByte('=')
		b.WriteString(c.text)
	}
	return b.String()
}

func decodeCells(s string) []cell {
	var cells []cell
	for part := range strings.SplitSeq(s, "\x00") {
		if part == "N" {
			cells = append(cells, cell{null: true})
		} else {
			cells = append(cells, cell{text: strings.TrimPrefix(part, "=")})
		}
	}
	return cells
}
