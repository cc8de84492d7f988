package compat_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

type sqlxItem struct {
	ID      int64     `db:"id"`
	Name    string    `db:"name"`
	Qty     int       `db:"qty"`
	Note    *string   `db:"note"`
	Created time.Time `db:"created"`
}

// sqlxStore names its columns in struct tags, prepares nothing but its reads, and
// writes "?" everywhere: sqlx turns it into what the dialect wants.
type sqlxStore struct {
	db     *sqlx.DB
	engine replicatedtest.Engine
}

func openSQLX(t *testing.T, c *replicatedtest.Cluster) store {
	return sqlxStore{sqlx.NewDb(open(t, replicated.DriverName, dsn(c)), c.DriverName()), c.Engine()}
}

func init() {
	sqlx.BindDriver(replicated.DriverNameMySQL, sqlx.QUESTION)
	sqlx.BindDriver(replicated.DriverNamePostgres, sqlx.DOLLAR)
}

func openSQLXByName(t *testing.T, c *replicatedtest.Cluster) store {
	db, err := sqlx.ConnectContext(t.Context(), prefixedName(c), dsn(c))
	check(t, err)
	closeAtEnd(t, db)
	measured(t, db.DB)
	return sqlxStore{db, c.Engine()}
}

func (s sqlxStore) CreateTable(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR(60) NOT NULL UNIQUE, qty INT NOT NULL, note VARCHAR(60), created TIMESTAMP NOT NULL)")
	return err
}

const sqlxInsert = "INSERT INTO items (id, name, qty, note, created) VALUES (:id, :name, :qty, :note, :created)"

func (s sqlxStore) Insert(ctx context.Context, items []item) error {
	rows := make([]sqlxItem, len(items))
	for n, i := range items {
		rows[n] = sqlxItem(i)
	}
	_, err := s.db.NamedExecContext(ctx, sqlxInsert, rows)
	return err
}

func (s sqlxStore) Get(ctx context.Context, id int64) (item, error) {
	stmt, err := s.db.PreparexContext(ctx, s.db.Rebind("SELECT * FROM items WHERE id = ?"))
	if err != nil {
		return item{}, err
	}
	defer stmt.Close()
	var row sqlxItem
	err = stmt.GetContext(ctx, &row, id)
	return item(row), err
}

func (s sqlxStore) SetQty(ctx context.Context, id int64, qty int) error {
	_, err := s.db.ExecContext(ctx, s.db.Rebind("UPDATE items SET qty = ? WHERE id = ?"), qty, id)
	return err
}

func (s sqlxStore) Transfer(ctx context.Context, from, to int64, amount int) (item, error) {
	tx, err := s.db.BeginTxx(ctx, nil)
	if err != nil {
		return item{}, err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	query, args, err := sqlx.In("SELECT * FROM items WHERE id IN (?) ORDER BY id", []int64{from, to})
	if err != nil {
		return item{}, err
	}
	var rows []sqlxItem
	if err := tx.SelectContext(ctx, &rows, tx.Rebind(query), args...); err != nil {
		return item{}, err
	}
	for _, r := range rows {
		if r.ID == from {
			r.Qty -= amount
		} else {
			r.Qty += amount
		}
		if _, err := tx.NamedExecContext(ctx, "UPDATE items SET qty = :qty WHERE id = :id", r); err != nil {
			return item{}, err
		}
	}
	var after sqlxItem
	if err := tx.GetContext(ctx, &after, tx.Rebind("SELECT * FROM items WHERE id = ?"), from); err != nil {
		return item{}, err
	}
	return item(after), tx.Commit()
}

func (s sqlxStore) Lock(ctx context.Context, id int64) (item, error) {
	var row sqlxItem
	err := s.db.GetContext(ctx, &row, s.db.Rebind("SELECT * FROM items WHERE id = ? FOR UPDATE"), id)
	return item(row), err
}

func (s sqlxStore) Upsert(ctx context.Context, i item) error {
	query := sqlxInsert + " ON DUPLICATE KEY UPDATE name = VALUES(name), qty = VALUES(qty), note = VALUES(note), created = VALUES(created)"
	if s.engine == replicatedtest.Postgres {
		query = sqlxInsert + " ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, qty = EXCLUDED.qty, note = EXCLUDED.note, created = EXCLUDED.created"
	}
	_, err := s.db.NamedExecContext(ctx, query, sqlxItem(i))
	return err
}

func (s sqlxStore) Delete(ctx context.Context, id int64) error {
	_, err := s.db.ExecContext(ctx, s.db.Rebind("DELETE FROM items WHERE id = ?"), id)
	return err
}

func (s sqlxStore) List(ctx context.Context) ([]item, error) {
	var rows []sqlxItem
	err := s.db.SelectContext(ctx, &rows, "SELECT * FROM items ORDER BY id")
	items := make([]item, len(rows))
	for n, r := range rows {
		items[n] = item(r)
	}
	return items, err
}
