package replicatedtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Vacuum makes a recovery conflict: on the PostgreSQL primary it rewrites one
// row of the table as it is and clears away the old version, which statements
// that run on a standby may still want to see. With
//
//	Options{ReplicaSettings: map[string]string{"max_standby_streaming_delay": "0"}}
//
// and hot_standby_feedback off, as it is, the standby cancels them when that
// arrives: whatever tables they read, each statement with an older snapshot
// fails with 40001, and a session in an open transaction is ended with the same
// code.
//
// table is a name as in a statement, with its schema if need be. There must be a
// row that nobody has locked, and no transaction on the primary that is older
// than the call: the server clears nothing away under it. MariaDB and MySQL know
// no such conflicts: the error is [errors.ErrUnsupported] there.
func (c *Cluster) Vacuum(ctx context.Context, table string) error {
	n := c.Primary()
	if err := c.db.vacuum(ctx, n, table); err != nil {
		return n.wrap("vacuum "+table, err)
	}
	n.c.logf("%s: vacuumed %s", n.name, table)
	return nil
}

func (p *postgres) vacuum(ctx context.Context, n *Node, table string) error {
	return n.withConnTo(ctx, Database, func(ctx context.Context, conn *sql.Conn) error {
		var name, column string
		err := conn.QueryRowContext(ctx, `SELECT $1::regclass, quote_ident(attname) FROM pg_attribute
			WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity <> 'a' ORDER BY attnum LIMIT 1`,
			table).Scan(&name, &column)
		if err != nil {
			return err
		}
		// One row, which nobody waits for: the application meets no deadlock.
		result, err := conn.ExecContext(ctx, fmt.Sprintf("UPDATE %[1]s SET %[2]s = %[2]s WHERE ctid = (SELECT ctid FROM %[1]s LIMIT 1 FOR UPDATE SKIP LOCKED)", name, column))
		if err != nil {
			return err
		}
		if count, err := result.RowsAffected(); err != nil || count != 1 {
			return errors.Join(err, errors.New("there is no row that is not locked"))
		}
		// To give pages back would lock the table on standbys.
		_, err = conn.ExecContext(ctx, "VACUUM (TRUNCATE false) "+name)
		return err
	})
}

func (m *mysqlFamily) vacuum(context.Context, *Node, string) error {
	return fmt.Errorf("%s has no recovery conflicts: %w", m.name(), errors.ErrUnsupported)
}
