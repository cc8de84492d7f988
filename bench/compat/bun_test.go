package compat_test

import (
	"context"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

type bunItem struct {
	bun.BaseModel `bun:"table:items,alias:i"`

	ID      int64     `bun:"id,pk"`
	Name    string    `bun:"name,notnull,unique,type:varchar(60)"`
	Qty     int       `bun:"qty,notnull"`
	Note    *string   `bun:"note,type:varchar(60)"`
	Created time.Time `bun:"created,notnull"`
}

func newBunItem(i item) *bunItem {
	return &bunItem{ID: i.ID, Name: i.Name, Qty: i.Qty, Note: i.Note, Created: i.Created}
}

func (b *bunItem) item() item {
	return item{ID: b.ID, Name: b.Name, Qty: b.Qty, Note: b.Note, Created: b.Created}
}

// bunStore writes all arguments into the text: nothing is ever prepared.
type bunStore struct {
	db     *bun.DB
	engine replicatedtest.Engine
}

func openBun(t *testing.T, c *replicatedtest.Cluster) store {
	var d schema.Dialect = mysqldialect.New()
	if c.Engine() == replicatedtest.Postgres {
		d = pgdialect.New()
	}
	return bunStore{bun.NewDB(open(t, replicated.DriverName, dsn(c)), d), c.Engine()}
}

func (s bunStore) CreateTable(ctx context.Context) error {
	_, err := s.db.NewCreateTable().Model((*bunItem)(nil)).Exec(ctx)
	return err
}

func (s bunStore) Insert(ctx context.Context, items []item) error {
	rows := make([]*bunItem, len(items))
	for n, i := range items {
		rows[n] = newBunItem(i)
	}
	_, err := s.db.NewInsert().Model(&rows).Exec(ctx)
	return err
}

func (s bunStore) Get(ctx context.Context, id int64) (item, error) {
	var row bunItem
	err := s.db.NewSelect().Model(&row).Where("id = ?", id).Scan(ctx)
	return row.item(), err
}

func (s bunStore) SetQty(ctx context.Context, id int64, qty int) error {
	_, err := s.db.NewUpdate().Model((*bunItem)(nil)).Set("qty = ?", qty).Where("id = ?", id).Exec(ctx)
	return err
}

func (s bunStore) Transfer(ctx context.Context, from, to int64, amount int) (after item, err error) {
	err = s.db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		var rows []*bunItem
		if err := tx.NewSelect().Model(&rows).Where("id IN (?)", bun.List([]int64{from, to})).Order("id").Scan(ctx); err != nil {
			return err
		}
		for _, r := range rows {
			if r.ID == from {
				r.Qty -= amount
			} else {
				r.Qty += amount
			}
			if _, err := tx.NewUpdate().Model(r).WherePK().Exec(ctx); err != nil {
				return err
			}
		}
		var again bunItem
		err := tx.NewSelect().Model(&again).Where("id = ?", from).Scan(ctx)
		after = again.item()
		return err
	})
	return after, err
}

func (s bunStore) Lock(ctx context.Context, id int64) (item, error) {
	var row bunItem
	err := s.db.NewSelect().Model(&row).Where("id = ?", id).For("UPDATE").Scan(ctx)
	return row.item(), err
}

func (s bunStore) Upsert(ctx context.Context, i item) error {
	q := s.db.NewInsert().Model(newBunItem(i))
	if s.engine == replicatedtest.Postgres {
		q = q.On("CONFLICT (id) DO UPDATE").
			Set("name = EXCLUDED.name, qty = EXCLUDED.qty, note = EXCLUDED.note, created = EXCLUDED.created")
	} else {
		q = q.On("DUPLICATE KEY UPDATE").
			Set("name = VALUES(name), qty = VALUES(qty), note = VALUES(note), created = VALUES(created)")
	}
	_, err := q.Exec(ctx)
	return err
}

func (s bunStore) Delete(ctx context.Context, id int64) error {
	_, err := s.db.NewDelete().Model(&bunItem{ID: id}).WherePK().Exec(ctx)
	return err
}

func (s bunStore) List(ctx context.Context) ([]item, error) {
	var rows []*bunItem
	err := s.db.NewSelect().Model(&rows).Order("id").Scan(ctx)
	items := make([]item, len(rows))
	for n, r := range rows {
		items[n] = r.item()
	}
	return items, err
}
