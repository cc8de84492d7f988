package compat_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

type gormItem struct {
	ID      int64   `gorm:"primaryKey;autoIncrement:false"`
	Name    string  `gorm:"size:60;uniqueIndex"`
	Qty     int     `gorm:"not null"`
	Note    *string `gorm:"size:60"`
	Created time.Time
}

func (gormItem) TableName() string { return "items" }

type gormStore struct{ db *gorm.DB }

func openGORM(t *testing.T, c *replicatedtest.Cluster) store {
	return gormStore{newGORM(t, c, replicated.DriverName, &gorm.Config{})}
}

// openGORMPrepared has GORM prepare every text once and keep it, as *sql.Stmt of
// the whole pool.
func openGORMPrepared(t *testing.T, c *replicatedtest.Cluster) store {
	return gormStore{newGORM(t, c, prefixedName(c), &gorm.Config{PrepareStmt: true})}
}

func newGORM(t *testing.T, c *replicatedtest.Cluster, name string, cfg *gorm.Config) *gorm.DB {
	t.Helper()
	cfg.Logger = logger.Discard
	d := mysql.New(mysql.Config{DriverName: name, DSN: dsn(c)})
	if c.Engine() == replicatedtest.Postgres {
		d = postgres.New(postgres.Config{DriverName: name, DSN: dsn(c)})
	}
	db, err := gorm.Open(d, cfg)
	check(t, err)
	pool, err := db.DB()
	check(t, err)
	closeAtEnd(t, pool)
	measured(t, pool)
	return db
}

func (s gormStore) CreateTable(ctx context.Context) error {
	return s.db.WithContext(ctx).AutoMigrate(&gormItem{})
}

func (s gormStore) Insert(ctx context.Context, items []item) error {
	rows := make([]gormItem, len(items))
	for n, i := range items {
		rows[n] = gormItem(i)
	}
	return s.db.WithContext(ctx).Create(&rows).Error
}

func (s gormStore) Get(ctx context.Context, id int64) (item, error) {
	var row gormItem
	err := s.db.WithContext(ctx).First(&row, id).Error
	return item(row), err
}

func (s gormStore) SetQty(ctx context.Context, id int64, qty int) error {
	return s.db.WithContext(ctx).Model(&gormItem{ID: id}).Update("qty", qty).Error
}

func (s gormStore) Transfer(ctx context.Context, from, to int64, amount int) (after item, err error) {
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var a, b gormItem
		if err := tx.First(&a, from).Error; err != nil {
			return err
		}
		if err := tx.First(&b, to).Error; err != nil {
			return err
		}
		a.Qty -= amount
		b.Qty += amount
		if err := tx.Save(&a).Error; err != nil {
			return err
		}
		if err := tx.Save(&b).Error; err != nil {
			return err
		}
		var again gormItem
		err := tx.First(&again, from).Error
		after = item(again)
		return err
	})
	return after, err
}

func (s gormStore) Lock(ctx context.Context, id int64) (item, error) {
	var row gormItem
	err := s.db.WithContext(ctx).Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).First(&row, id).Error
	return item(row), err
}

func (s gormStore) Upsert(ctx context.Context, i item) error {
	row := gormItem(i)
	return s.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

func (s gormStore) Delete(ctx context.Context, id int64) error {
	return s.db.WithContext(ctx).Delete(&gormItem{}, id).Error
}

func (s gormStore) List(ctx context.Context) ([]item, error) {
	var rows []gormItem
	err := s.db.WithContext(ctx).Order("id").Find(&rows).Error
	items := make([]item, len(rows))
	for n, r := range rows {
		items[n] = item(r)
	}
	return items, err
}

// GORM recognises the errors of servers by type assertion, which a wrapped error
// does not survive.
func TestGORMTranslatesErrors(t *testing.T) {
	for _, e := range replicatedtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			c := sharedCluster(t, e)
			s := gormStore{newGORM(t, c, replicated.DriverName, &gorm.Config{TranslateError: true})}
			ctx := request(t)
			check(t, s.CreateTable(ctx))
			row := []item{{ID: 1, Name: "bolt", Created: time.Unix(0, 0)}}
			check(t, s.Insert(ctx, row))
			if err := s.Insert(ctx, row); !errors.Is(err, gorm.ErrDuplicatedKey) {
				t.Errorf("a second row of one key: %v (%T), want gorm.ErrDuplicatedKey", err, err)
			}
		})
	}
}
