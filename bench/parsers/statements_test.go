package parsers_test

import (
	"strconv"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// statement is one text that is measured.
type statement struct {
	name    string
	dialect classify.Dialect
	replica bool // a read that may leave the primary
	sql     string
}

// shortStatements are what ORMs send for everyday reads and writes, each between
// 80 and 300 bytes. The texts are of the form that the libraries make: names in
// quotes, qualified columns, placeholders.
var shortStatements = []statement{
	{"gorm-first", classify.Postgres, true, `SELECT * FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2`},
	{"gorm-columns", classify.Postgres, true, `SELECT "users"."id","users"."name","users"."email","users"."age" FROM "users" WHERE "users"."email" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT $2`},
	{"gorm-insert", classify.Postgres, false, `INSERT INTO "users" ("created_at","updated_at","deleted_at","name","email","age") VALUES ($1,$2,$3,$4,$5,$6) RETURNING "id"`},
	{"ent-edges", classify.Postgres, true, `SELECT "users"."id", "users"."age", "users"."name" FROM "users" JOIN (SELECT "pets"."owner_id" FROM "pets" WHERE "pets"."name" = $1) AS "t1" ON "users"."id" = "t1"."owner_id" WHERE "users"."age" > $2 LIMIT 10`},
	{"ent-upsert", classify.Postgres, false, `INSERT INTO "users" ("name", "age", "created_at", "updated_at", "active") VALUES ($1, $2, $3, $4, $5) ON CONFLICT ("name") DO UPDATE SET "age" = $6 RETURNING "id"`},
	{"rails-find", classify.Postgres, true, `SELECT "posts".* FROM "posts" WHERE "posts"."user_id" = $1 AND "posts"."published" = $2 ORDER BY "posts"."created_at" DESC LIMIT $3`},
	{"rails-count", classify.Postgres, true, `SELECT COUNT(*) FROM "posts" WHERE "posts"."user_id" = $1 AND "posts"."published" = $2 /*application:Blog*/`},
	{"rails-update", classify.Postgres, false, `UPDATE "posts" SET "title" = $1, "body" = $2, "updated_at" = $3 WHERE "posts"."id" = $4`},
	{"rails-lock", classify.Postgres, false, `SELECT "accounts".* FROM "accounts" WHERE "accounts"."id" = $1 AND "accounts"."active" = $2 LIMIT $3 FOR UPDATE`},
	{"django-get", classify.Postgres, true, `SELECT "auth_user"."id", "auth_user"."password", "auth_user"."last_login", "auth_user"."username", "auth_user"."email", "auth_user"."is_active" FROM "auth_user" WHERE "auth_user"."id" = 42 LIMIT 21`},
	{"django-join", classify.Postgres, true, `SELECT "shop_order"."id", "shop_order"."created", "shop_order"."total" FROM "shop_order" INNER JOIN "shop_customer" ON ("shop_order"."customer_id" = "shop_customer"."id") WHERE ("shop_customer"."email" = $1 AND "shop_order"."created" >= $2) ORDER BY "shop_order"."created" DESC LIMIT 21`},
	{"hibernate-join", classify.Postgres, true, `select b1_0.id,b1_0.author_id,b1_0.isbn,b1_0.title from book b1_0 left join author a1_0 on a1_0.id=b1_0.author_id where a1_0.name=$1 and b1_0.published>=$2 fetch first $3 rows only`},
	{"sqlx-group", classify.Postgres, true, `SELECT author_id, count(*) AS n, max(created_at) AS latest FROM articles WHERE status = $1 AND created_at > now() - interval '7 days' GROUP BY author_id ORDER BY n DESC LIMIT 10`},

	{"gorm-first", classify.MySQL, true, "SELECT * FROM `users` WHERE `users`.`id` = ? AND `users`.`deleted_at` IS NULL ORDER BY `users`.`id` LIMIT ?"},
	{"gorm-insert", classify.MySQL, false, "INSERT INTO `users` (`created_at`,`updated_at`,`deleted_at`,`name`,`email`,`age`) VALUES (?,?,?,?,?,?)"},
	{"gorm-update", classify.MySQL, false, "UPDATE `orders` SET `status`=?,`updated_at`=? WHERE `orders`.`id` = ? AND `orders`.`deleted_at` IS NULL AND `version` = ?"},
	{"gorm-lock", classify.MySQL, false, "SELECT * FROM `accounts` WHERE `accounts`.`id` = ? AND `accounts`.`deleted_at` IS NULL ORDER BY `accounts`.`id` LIMIT ? FOR UPDATE"},
	{"ent-edges", classify.MySQL, true, "SELECT `users`.`id`, `users`.`age`, `users`.`name` FROM `users` JOIN (SELECT `pets`.`owner_id` FROM `pets` WHERE `pets`.`name` = ?) AS `t1` ON `users`.`id` = `t1`.`owner_id` WHERE `users`.`age` > ? LIMIT 10"},
	{"rails-find", classify.MySQL, true, "SELECT `posts`.* FROM `posts` WHERE `posts`.`user_id` = 7 AND `posts`.`published` = TRUE ORDER BY `posts`.`created_at` DESC LIMIT 20"},
	{"rails-count", classify.MySQL, true, "SELECT COUNT(*) FROM `posts` WHERE `posts`.`user_id` = 7 AND `posts`.`published` = TRUE /*application:Blog*/"},
	{"django-get", classify.MySQL, true, "SELECT `auth_user`.`id`, `auth_user`.`password`, `auth_user`.`last_login`, `auth_user`.`username`, `auth_user`.`email`, `auth_user`.`is_active` FROM `auth_user` WHERE `auth_user`.`id` = 42 LIMIT 21"},
	{"hibernate-join", classify.MySQL, true, "select book0_.id as id1_0_, book0_.author_id as author_i4_0_, book0_.isbn as isbn2_0_, book0_.title as title3_0_ from book book0_ left outer join author author1_ on book0_.author_id=author1_.id where author1_.name=? limit ?"},
	{"hibernate-insert", classify.MySQL, false, "insert into book (author_id, isbn, published, title, price, version, id) values (?, ?, ?, ?, ?, ?, ?)"},
	{"sqlx-group", classify.MySQL, true, "SELECT author_id, COUNT(*) AS n, MAX(created_at) AS latest FROM articles WHERE status = ? AND created_at > '2024-01-01 00:00:00' GROUP BY author_id ORDER BY n DESC LIMIT 10"},
}

// longStatements are a read of many keys, of 10 KiB, and an insert of many rows, of
// 1 MiB.
var longStatements = []statement{
	{"select-keys", classify.Postgres, true, `SELECT "events"."id", "events"."kind" FROM "events" WHERE "events"."user_id" IN (` + keys + `) ORDER BY "events"."id"`},
	{"insert-rows", classify.Postgres, false, `INSERT INTO "events" ("user_id","kind","payload") VALUES ` + rows},
	{"select-keys", classify.MySQL, true, "SELECT `events`.`id`, `events`.`kind` FROM `events` WHERE `events`.`user_id` IN (" + keys + ") ORDER BY `events`.`id`"},
	{"insert-rows", classify.MySQL, false, "INSERT INTO `events` (`user_id`,`kind`,`payload`) VALUES " + rows},
}

var (
	keys = repeat(10<<10, func(i int) string { return strconv.Itoa(1000000 + 7*i) })
	rows = repeat(1<<20, func(i int) string {
		n := strconv.Itoa(i)
		return "(" + n + ",'page viewed','/articles/" + n + "/comments')"
	})
)

// repeat returns parts with commas between, of at least so many bytes together.
func repeat(bytes int, part func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(part(i))
	}
	return b.String()
}
