package compat_test

import (
	"context"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/bench/compat/ent"
	entitem "github.com/sqlreplicated/replicated/bench/compat/ent/item"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

type entStore struct{ client *ent.Client }

// openEnt tells ent the dialect of a ready handle.
func openEnt(t *testing.T, c *replicatedtest.Cluster) store {
	d := dialect.MySQL
	if c.Engine() == replicatedtest.Postgres {
		d = dialect.Postgres
	}
	drv := entsql.OpenDB(d, open(t, replicated.DriverName, dsn(c)))
	return entStore{ent.NewClient(ent.Driver(drv))}
}

// openEntByName leaves it to ent to read the dialect off the driver's name.
func openEntByName(t *testing.T, c *replicatedtest.Cluster) store {
	drv, err := entsql.Open(prefixedName(c), dsn(c))
	check(t, err)
	client := ent.NewClient(ent.Driver(drv))
	closeAtEnd(t, client)
	measured(t, drv.DB())
	return entStore{client}
}

func (s entStore) CreateTable(ctx context.Context) error {
	return s.client.Schema.Create(ctx)
}

func (s entStore) Insert(ctx context.Context, items []item) error {
	rows := make([]*ent.ItemCreate, len(items))
	for n, i := range items {
		rows[n] = create(s.client, i)
	}
	return s.client.Item.CreateBulk(rows...).Exec(ctx)
}

func (s entStore) Get(ctx context.Context, id int64) (item, error) {
	return toItem(s.client.Item.Get(ctx, id))
}

func (s entStore) SetQty(ctx context.Context, id int64, qty int) error {
	return s.client.Item.Update().Where(entitem.ID(id)).SetQty(qty).Exec(ctx)
}

func (s entStore) Transfer(ctx context.Context, from, to int64, amount int) (item, error) {
	tx, err := s.client.Tx(ctx)
	if err != nil {
		return item{}, err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	rows, err := tx.Item.Query().Where(entitem.IDIn(from, to)).Order(ent.Asc(entitem.FieldID)).All(ctx)
	if err != nil {
		return item{}, err
	}
	for _, r := range rows {
		qty := r.Qty + amount
		if r.ID == from {
			qty = r.Qty - amount
		}
		if err := tx.Item.UpdateOne(r).SetQty(qty).Exec(ctx); err != nil {
			return item{}, err
		}
	}
	after, err := toItem(tx.Item.Get(ctx, from))
	if err != nil {
		return item{}, err
	}
	return after, tx.Commit()
}

func (s entStore) Lock(ctx context.Context, id int64) (item, error) {
	return toItem(s.client.Item.Query().Where(entitem.ID(id)).ForUpdate().Only(ctx))
}

func (s entStore) Upsert(ctx context.Context, i item) error {
	return create(s.client, i).OnConflictColumns(entitem.FieldID).UpdateNewValues().Exec(ctx)
}

func (s entStore) Delete(ctx context.Context, id int64) error {
	return s.client.Item.DeleteOneID(id).Exec(ctx)
}

func (s entStore) List(ctx context.Context) ([]item, error) {
	rows, err := s.client.Item.Query().Order(ent.Asc(entitem.FieldID)).All(ctx)
	items := make([]item, len(rows))
	for n, r := range rows {
		items[n], _ = toItem(r, nil)
	}
	return items, err
}

func create(c *ent.Client, i item) *ent.ItemCreate {
	return c.Item.Create().SetID(i.ID).SetName(i.Name).SetQty(i.Qty).SetNillableNote(i.Note).SetCreated(i.Created)
}

func toItem(r *ent.Item, err error) (item, error) {
	if err != nil {
		return item{}, err
	}
	return item{ID: r.ID, Name: r.Name, Qty: r.Qty, Note: r.Note, Created: r.Created}, nil
}
