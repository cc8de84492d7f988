package classify_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// ormStatements are what ORMs send for everyday reads and writes, 80 to 300 bytes.
var ormStatements = []struct {
	name    string
	dialect classify.Dialect
	sql     string
}{
	{"select-1", classify.Postgres, "SELECT 1"},
	{"gorm-pg-130", classify.Postgres, `SELECT "users"."id","users"."name","users"."email" FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2`},
	{"gorm-my-90", classify.MySQL, "SELECT * FROM `users` WHERE `users`.`id` = ? AND `users`.`deleted_at` IS NULL LIMIT ?"},
	{"django-pg-290", classify.Postgres, `SELECT "shop_order"."id", "shop_order"."customer_id", "shop_order"."created", "shop_order"."total" FROM "shop_order" INNER JOIN "shop_customer" ON ("shop_order"."customer_id" = "shop_customer"."id") WHERE ("shop_customer"."email" = $1 AND "shop_order"."created" >= $2) ORDER BY "shop_order"."created" DESC LIMIT 21`},
	{"hibernate-my-220", classify.MySQL, "select book0_.id as id1_0_, book0_.author_id as author_i4_0_, book0_.isbn as isbn2_0_, book0_.title as title3_0_ from book book0_ left outer join author author1_ on book0_.author_id=author1_.id where author1_.name=? limit ?"},
	{"rails-pg-count-100", classify.Postgres, `SELECT COUNT(*) FROM "posts" WHERE "posts"."user_id" = $1 AND "posts"."published" = $2 /*app:blog*/`},
	{"ent-pg-insert-160", classify.Postgres, `INSERT INTO "users" ("name", "age", "created_at", "updated_at", "active") VALUES ($1, $2, $3, $4, $5) ON CONFLICT ("name") DO UPDATE SET "age" = $6 RETURNING "id"`},
	{"sqlx-generic-110", classify.Generic, `SELECT id, title, body, created_at FROM articles WHERE author_id = ? AND status = ? ORDER BY created_at DESC LIMIT 10`},
	{"update-my-120", classify.MySQL, "UPDATE `orders` SET `status`=?,`updated_at`=? WHERE `orders`.`id` = ? AND `orders`.`deleted_at` IS NULL AND `version` = ?"},
}

func BenchmarkClassify(b *testing.B) {
	for _, s := range ormStatements {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.sql)))
			b.ReportAllocs()
			for b.Loop() {
				classify.Classify(s.dialect, s.sql)
			}
		})
	}
}

// longStatements are texts of a megabyte.
func longStatements() map[string]string {
	return map[string]string{
		"in-list":  "SELECT * FROM t WHERE id IN (" + strings.Repeat("1234567, ", 1<<17) + "1)",
		"values":   "INSERT INTO t (a, b, c) VALUES " + strings.Repeat("(123456, 'some text of a row', 'and more of it'), ", 1<<14) + "(1, '', '')",
		"literal":  "SELECT '" + strings.Repeat("a long text with nothing in it ", 1<<15) + "'",
		"comments": strings.Repeat("/* a comment of some length, as tools write them */ ", 1<<14) + "SELECT 1",
		"columns":  "SELECT " + strings.Repeat("some_table.some_column, ", 1<<15) + "1 FROM some_table",
	}
}

func BenchmarkClassifyLong(b *testing.B) {
	for name, sql := range longStatements() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(sql)))
			b.ReportAllocs()
			for b.Loop() {
				classify.Classify(classify.Postgres, sql)
			}
		})
	}
}

// BenchmarkHostile: texts made to be slow, 64 KiB each of one piece. What counts is
// ns/byte, which must not grow with the length: compare with -hostile.size.
func BenchmarkHostile(b *testing.B) {
	for _, piece := range []string{
		"(", "/*", "*/", "/*/", "$a$", "$", "'", "\"", "`", "\\'", "'\\'", "E'", "--", "#", ";", "a.", "f(", "@", "@@", "1.", "1e",
		"SELECT ", "WITH a AS (", "set_config(", "/*!50000 ", "/*!99999 ", "U&'", "now ", "\\", "::", ")(", "pg_temp.", "SELECT nextval('s'); ",
		"EXPLAIN ", "CREATE DEFINER ", "(/*", "\x00", "\xff", "\u00a0", "select*from(", "a b ", "COPY (", "SET a=(", "'\n'",
	} {
		sql := "SELECT " + strings.Repeat(piece, *hostileSize/len(piece))
		for _, d := range dialects {
			b.Run(fmt.Sprintf("%q/%v", piece, d), func(b *testing.B) {
				b.SetBytes(int64(len(sql)))
				for b.Loop() {
					classify.Classify(d, sql)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(sql)), "ns/byte")
			})
		}
	}
}

var hostileSize = flag.Int("hostile.size", 1<<16, "bytes of each text of BenchmarkHostile")
