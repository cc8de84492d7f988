package demo

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqlreplicated/replicated"
)

// routing is the first chapter: where each kind of statement goes, and why, by the
// driver's events and by the servers' own logs.
func (d *demo) routing(ctx context.Context) error {
	d.screen.chapter(1, "Where each statement goes, and why")
	t := &routes{d: d, ctx: ctx}
	t.head()
	for _, group := range []struct {
		title string
		rows  func() error
	}{
		{"plain reads", t.plainReads},
		{"a write, and reads after it", t.readsAfterWrite},
		{"writes that do not look like one", t.hiddenWrites},
		{"transactions, and state in a connection", t.transactions},
		{"as the caller asks", t.wishes},
	} {
		d.screen.line("  " + d.screen.paint(bold, group.title))
		if err := group.rows(); err != nil {
			return err
		}
	}
	d.screen.line("")
	d.screen.note("\"why\" is the reason in the driver's event. \"log\": " + d.servers.logs() +
		" have the statement on this node, as often as it ran, and on no other.")

	d.promises.add("Plain reads run on both replicas", t.reads.ok == t.reads.all && t.both, outOf(t.reads.ok, t.reads.all)+" kinds")
	d.promises.add("Writes and locks run on the primary", t.writes.ok == t.writes.all && t.writes.all > 0, outOf(t.writes.ok, t.writes.all)+" statements")
	if d.bank.functions {
		d.promises.add("A write in a function runs once", t.after == t.before+bonus, fmt.Sprintf("a bonus of %d: %d became %d", bonus, t.before, t.after))
	}
	d.promises.add("Its events agree with servers' logs", t.agreed == t.shown && t.shown > 0, outOf(t.agreed, t.shown)+" rows")
	return nil
}

func (t *routes) plainReads() error {
	db, ctx := t.d.observed, t.session()
	const often = 20 // so that both replicas have their turn
	one := t.text("SELECT owner FROM accounts WHERE id = ?")
	if err := t.times(fmt.Sprintf("%d times: %s", often, one), one, replicated.RoleReplica, func() error {
		for range often {
			if err := query(ctx, db, one, routingAcct); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for _, text := range []string{
		"SELECT count(*), sum(balance) FROM accounts",
		"WITH rich AS (SELECT id FROM accounts) SELECT count(*) FROM rich",
	} {
		if err := t.row(text, replicated.RoleReplica, func() error { return query(ctx, db, text) }); err != nil {
			return err
		}
	}
	text := t.text("SELECT balance, owner FROM accounts WHERE id = ?")
	stmt, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // it is closed: the linter loses sight of it in the closure
	if err != nil {
		return err
	}
	defer stmt.Close()
	return t.times("prepared: "+text, text, replicated.RoleReplica, func() error {
		var balance int
		var owner string
		return stmt.QueryRowContext(ctx, routingAcct).Scan(&balance, &owner)
	})
}

func (t *routes) readsAfterWrite() error {
	db, ctx := t.d.observed, t.session()
	deposit, balance := t.text(depositText), t.text(balanceText)
	if err := t.row(deposit, replicated.RolePrimary, func() error { return exec(ctx, db, deposit, 10, routingAcct) }); err != nil {
		return err
	}
	if err := t.times("same user: "+balance, balance, replicated.RolePrimary, func() error { return query(ctx, db, balance, routingAcct) }); err != nil {
		return err
	}
	other := t.session()
	if err := t.times("other user: "+balance, balance, replicated.RoleReplica, func() error { return query(other, db, balance, routingAcct) }); err != nil {
		return err
	}
	waived := replicated.WithStaleReads(ctx, lag*10)
	return t.times("WithStaleReads: "+balance, balance, replicated.RoleReplica, func() error { return query(waived, db, balance, routingAcct) })
}

func (t *routes) hiddenWrites() error {
	db := t.d.observed
	insert := "INSERT INTO payments VALUES (1, 1, 10) RETURNING id"
	if err := t.times("INSERT INTO payments … RETURNING id", insert, replicated.RolePrimary, func() error { return query(t.session(), db, insert) }); err != nil {
		return err
	}
	if t.d.bank.writingCTEs {
		text := "WITH paid AS (UPDATE accounts SET balance = balance + 1 WHERE id = 1 RETURNING id) SELECT * FROM paid"
		if err := t.times("WITH paid AS (UPDATE accounts …) SELECT …", text, replicated.RolePrimary, func() error { return query(t.session(), db, text) }); err != nil {
			return err
		}
	}
	if t.d.bank.lockingReads {
		text := "SELECT owner FROM accounts WHERE id = 1 FOR UPDATE"
		if err := t.times("SELECT owner FROM accounts … FOR UPDATE", text, replicated.RolePrimary, func() error { return query(t.session(), db, text) }); err != nil {
			return err
		}
	}
	if !t.d.bank.functions {
		return nil
	}
	var err error
	if t.before, err = t.primaryBalance(); err != nil {
		return err
	}
	text := "SELECT add_bonus(1)"
	if err := t.row(text, replicated.RolePrimary, func() error { return query(t.session(), db, text) }); err != nil {
		return err
	}
	t.after, err = t.primaryBalance()
	return err
}

func (t *routes) transactions() error {
	db := t.d.observed
	ctx := t.session()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // unless it was committed
	text := "SELECT max(balance) FROM accounts"
	if err := t.times("Begin: "+text, text, replicated.RolePrimary, func() error { return query(ctx, tx, text) }); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}

	ctx = t.session()
	reader, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer reader.Rollback() //nolint:errcheck // unless it was committed
	text = "SELECT min(balance) FROM accounts"
	if err := t.times("Begin, ReadOnly: "+text, text, replicated.RoleReplica, func() error { return query(ctx, reader, text) }); err != nil {
		return err
	}
	if err := reader.Commit(); err != nil {
		return err
	}

	ctx = t.session()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	temp := "CREATE TEMPORARY TABLE basket (id INTEGER)"
	if err := t.row(temp, replicated.RolePrimary, func() error { return exec(ctx, conn, temp) }); err != nil {
		return err
	}
	text = "SELECT count(*) FROM basket"
	if err := t.times("same connection: "+text, text, replicated.RolePrimary, func() error { return query(ctx, conn, text) }); err != nil {
		return err
	}
	return exec(ctx, conn, "DROP TABLE basket")
}

func (t *routes) wishes() error {
	db := t.d.observed
	text := "SELECT avg(balance) FROM accounts"
	asked := replicated.WithPrimary(t.session())
	if err := t.times("WithPrimary: "+text, text, replicated.RolePrimary, func() error { return query(asked, db, text) }); err != nil {
		return err
	}
	hint := "SELECT /* replicated:primary */ avg(balance) FROM accounts"
	if err := t.times("SELECT /* replicated:primary */ …", hint, replicated.RolePrimary, func() error { return query(t.session(), db, hint) }); err != nil {
		return err
	}
	return t.refused("DELETE FROM payments", func(text string) error {
		return exec(replicated.WithReadOnly(t.session()), db, text)
	})
}
