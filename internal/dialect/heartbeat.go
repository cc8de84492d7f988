package dialect

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sqlreplicated/replicated/internal/position"
)

// A heartbeat is one row that the primary counts up and replication carries to
// the replicas like any other change, for servers that have no position to
// compare: whoever reads a count on a replica knows that all that was written
// before it has been applied there too, provided that changes are applied in the
// order in which they were committed; see [Dialect.InOrderApply]. The row has a
// random epoch, so that the counts of a table that was made anew are not taken
// for the former one's.

// beats are the statements of a heartbeat. The table's name, quoted, takes the
// place of @table@.
type beats struct {
	quote  string   // of names
	most   int      // bytes of a name
	ddl    []string // makes the table and its row; @epoch@ is the row's epoch
	beat   string   // counts up; empty: read does it
	update string   // counts up and returns epoch, counter; empty: beat, then read
	read   string   // returns epoch, counter, autocommit

	inOrder func(context.Context, driver.Conn) (ok bool, why string, err error)
}

// ErrNoHeartbeat is returned where the database is not known to keep one, or its
// table has no row.
var ErrNoHeartbeat = errors.New("no heartbeat")

// HeartbeatDDL returns the statements that make a heartbeat table of this name,
// "table" or "schema.table", and its row, with an epoch of its own. What is there
// already stays as it is. A new epoch is had by dropping the table first.
//
// Names are of letters, digits, "_" and "$" of ASCII, and are taken as written:
// PostgreSQL folds none of them to lower case.
func (d *Dialect) HeartbeatDDL(table string) ([]string, error) {
	name, err := d.heartbeatTable(table)
	if err != nil {
		return nil, err
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	epoch := binary.BigEndian.Uint64(b[:])>>1 | 1
	out := make([]string, len(d.beats.ddl))
	for i, text := range d.beats.ddl {
		out[i] = strings.NewReplacer("@table@", name, "@epoch@", strconv.FormatUint(epoch, 10)).Replace(text)
	}
	return out, nil
}

// Beat counts the heartbeat up on the primary and returns its position, which
// holds all that the server had acknowledged before the call. conn must be in no
// transaction, and have autocommit, so that the count is committed when Beat
// returns.
//
// The position is the row's after the commit, and may be another process's later
// one.
func (d *Dialect) Beat(ctx context.Context, conn driver.Conn, table string) (position.Position, error) {
	name, err := d.heartbeatTable(table)
	if err != nil {
		return position.Position{}, err
	}
	if d.beats.update != "" {
		return d.readBeat(ctx, conn, name, d.beats.update)
	}
	if err := exec(ctx, conn, strings.ReplaceAll(d.beats.beat, "@table@", name)); err != nil {
		return position.Position{}, fmt.Errorf("replicated: heartbeat: %w", err)
	}
	return d.readBeat(ctx, conn, name, d.beats.read)
}

// ReadBeat returns the heartbeat's position as the server shows it: what a replica
// has applied, or what a primary has written.
func (d *Dialect) ReadBeat(ctx context.Context, conn driver.Conn, table string) (position.Position, error) {
	name, err := d.heartbeatTable(table)
	if err != nil {
		return position.Position{}, err
	}
	return d.readBeat(ctx, conn, name, d.beats.read)
}

func (d *Dialect) readBeat(ctx context.Context, conn driver.Conn, name, text string) (position.Position, error) {
	row, err := queryRow(ctx, conn, strings.ReplaceAll(text, "@table@", name), 3)
	if errors.Is(err, errNoRow) {
		return position.Position{}, fmt.Errorf("replicated: the table %s has no row: %w", name, ErrNoHeartbeat)
	}
	if err != nil {
		return position.Position{}, fmt.Errorf("replicated: heartbeat: %w", err)
	}
	if !row[2].on() {
		// In a transaction that stays open the row may be an old one, or a count
		// that is never committed.
		return position.Position{}, errors.New("replicated: heartbeat: the session has autocommit off")
	}
	epoch, err1 := strconv.ParseUint(row[0].text, 10, 64)
	counter, err2 := strconv.ParseUint(row[1].text, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return position.Position{}, fmt.Errorf("replicated: heartbeat: %w", err)
	}
	return position.BeatPosition(epoch, counter), nil
}

// InOrderApply reports whether the server behind conn, a replica, shows changes
// in the order in which its primary has committed them, without which a heartbeat
// proves nothing. If not, or if the server does not tell, why names the setting.
// It takes a query or two and no privilege, and holds until somebody changes the
// server's settings.
//
// What no setting tells stays with whoever sets up a heartbeat: that one stream
// brings all changes and the heartbeat's (one subscription, one source), without
// filters, and that the tables are transactional ones.
func (d *Dialect) InOrderApply(ctx context.Context, conn driver.Conn) (ok bool, why string, err error) {
	if d.beats == nil {
		return false, "nothing is known of this database's replication", nil
	}
	if ok, why, err = d.beats.inOrder(ctx, conn); err != nil {
		return false, "", fmt.Errorf("replicated: asking how changes are applied: %w", err)
	}
	return ok, why, nil
}

// heartbeatTable checks a table's name and quotes it.
func (d *Dialect) heartbeatTable(table string) (string, error) {
	if d.beats == nil {
		return "", fmt.Errorf("replicated: %v keeps none that is known: %w", d.Kind, ErrNoHeartbeat)
	}
	parts := strings.Split(table, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("replicated: heartbeat table %q: want table or schema.table", table)
	}
	for i, part := range parts {
		if part == "" || len(part) > d.beats.most || strings.IndexFunc(part, notInName) >= 0 {
			return "", fmt.Errorf("replicated: heartbeat table %q: a name is 1 to %d letters, digits, _ and $ of ASCII", table, d.beats.most)
		}
		parts[i] = d.beats.quote + part + d.beats.quote
	}
	return strings.Join(parts, "."), nil
}

func notInName(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '$')
}
