package demo

import (
	"context"
	"database/sql"
	"math/rand/v2"
)

// teller is the application, as far as one can watch it read its own writes.
type teller interface {
	deposit(ctx context.Context, account int) error
	balance(ctx context.Context, account int) (int, error)
}

// driverTeller leaves everything to the driver: one handle.
type driverTeller struct {
	db   *sql.DB
	bank bank
}

func (t driverTeller) deposit(ctx context.Context, account int) error {
	_, err := t.db.ExecContext(ctx, t.bank.text(depositText), 1, account)
	return err
}

func (t driverTeller) balance(ctx context.Context, account int) (n int, err error) {
	err = t.db.QueryRowContext(ctx, t.bank.text(balanceText), account).Scan(&n)
	return n, err
}

// naiveTeller splits reads and writes by hand, as many applications do: writes to
// the primary, each read to any replica.
type naiveTeller struct {
	primary  driverTeller
	replicas []driverTeller
}

func (t naiveTeller) deposit(ctx context.Context, account int) error {
	return t.primary.deposit(ctx, account)
}

func (t naiveTeller) balance(ctx context.Context, account int) (int, error) {
	return t.replicas[rand.IntN(len(t.replicas))].balance(ctx, account)
}

// naive returns the naive split on bare handles, and what closes them.
func (d *demo) naive() (t naiveTeller, done func(), err error) {
	var handles []*sql.DB
	done = func() {
		for _, db := range handles {
			_ = db.Close() // what was read has been read
		}
	}
	for i, n := range d.servers.nodes() {
		db, err := n.bare()
		if err != nil {
			done()
			return naiveTeller{}, nil, err
		}
		db.SetMaxIdleConns(maxIdle)
		handles = append(handles, db)
		if i == 0 {
			t.primary = driverTeller{db, d.bank}
		} else {
			t.replicas = append(t.replicas, driverTeller{db, d.bank})
		}
	}
	return t, done, nil
}
