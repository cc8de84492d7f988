package classify_test

import (
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// TestORMReads: what ORMs and query builders send to read goes to replicas.
func TestORMReads(t *testing.T) {
	wantReplica(t, pg,
		// GORM, bun, ent, sqlx
		`SELECT * FROM "users" WHERE "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT 1`,
		`SELECT count(*) FROM "users" WHERE name LIKE $1 AND "users"."deleted_at" IS NULL`,
		`SELECT "user"."id", "user"."name" FROM "users" AS "user" WHERE ("user"."id" IN (1, 2, 3)) AND ("user"."active" = TRUE)`,
		`SELECT "users"."id", "users"."age" FROM "users" JOIN (SELECT "pets"."owner_id" AS "owner_id", COUNT(*) AS "n" FROM "pets" GROUP BY "pets"."owner_id") AS "t1" ON "users"."id" = "t1"."owner_id" WHERE NOT ("users"."age" < $1 OR EXISTS (SELECT "x"."id" FROM "x" WHERE "users"."id" = "x"."user_id"))`,
		`WITH RECURSIVE "tree"("id", "parent_id", "depth") AS (SELECT "id", "parent_id", 0 FROM "nodes" WHERE "id" = $1 UNION ALL SELECT n.id, n.parent_id, t.depth + 1 FROM nodes n JOIN tree t ON n.parent_id = t.id) SELECT * FROM "tree"`,
		// Django
		`SELECT (1) AS "a" FROM "auth_user" WHERE "auth_user"."username" = $1 LIMIT 1`,
		`SELECT COUNT(*) AS "__count" FROM (SELECT DISTINCT ON ("t"."a") "t"."a" AS "col1" FROM "t") subquery`,
		`SELECT "t"."id", UPPER("t"."name"::text) LIKE UPPER($1), EXTRACT(YEAR FROM "t"."d" AT TIME ZONE 'UTC') FROM "t" WHERE "t"."d" BETWEEN $2 AND $3`,
		`SELECT DATE_TRUNC('day', "t"."created" AT TIME ZONE 'UTC') AS "day", SUM("t"."x") FILTER (WHERE "t"."y") AS "s" FROM "t" GROUP BY 1 HAVING COUNT("t"."id") > 2 ORDER BY 1 ASC NULLS LAST`,
		`SELECT CASE WHEN ("t"."a" = 1) THEN ('x') ELSE NULL END AS "c", COALESCE("t"."b", $1), ("t"."j" -> 'k') #>> '{}' FROM "t" WHERE ("t"."j" @> '{"a": 1}'::jsonb AND "t"."tags" && ARRAY['a']::varchar(10)[])`,
		`SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') THEN 'v' ELSE 't' END, obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid)`,
		// Rails
		`SELECT "posts".* FROM "posts" INNER JOIN "users" ON "users"."id" = "posts"."user_id" WHERE "posts"."published" = TRUE ORDER BY RANDOM() LIMIT 5 /*application:Blog,controller:posts,action:index*/`,
		`SELECT 1 AS one FROM "users" WHERE "users"."email" = 'a@b.c' LIMIT 1`,
		`SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation WHERE a.attrelid = '"posts"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
		`SELECT "version" FROM "schema_migrations" ORDER BY "version" ASC`,
		`SELECT "t".* FROM (SELECT "p".*, ROW_NUMBER() OVER (PARTITION BY "p"."user_id" ORDER BY "p"."id" DESC) AS rn FROM "posts" "p") "t" WHERE "t"."rn" <= 3`,
		// Hibernate, JPA
		`select u1_0.id,u1_0.name,r1_0.user_id,r1_1.id from users u1_0 left join user_roles r1_0 on u1_0.id=r1_0.user_id left join roles r1_1 on r1_1.id=r1_0.role_id where u1_0.email=? and u1_0.created>? order by u1_0.id offset ? rows fetch first ? rows only`,
		`select distinct b1_0.id from book b1_0 where exists(select 1 from author a1_0 where a1_0.id=b1_0.author_id and lower(a1_0.name) like ? escape '\')`,
		// Prisma, TypeORM, Sequelize, SQLAlchemy
		`SELECT "public"."User"."id", "public"."User"."email" FROM "public"."User" WHERE ("public"."User"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3`,
		`SELECT COALESCE(jsonb_agg("__prisma_data__"), '[]') FROM (SELECT "t2"."__prisma_data__" FROM (SELECT JSONB_BUILD_OBJECT('id', "t1"."id") AS "__prisma_data__" FROM (SELECT "t0".* FROM "public"."Post" AS "t0") AS "t1") AS "t2") AS "t3"`,
		`SELECT "User"."id" AS "User_id", count(1) AS "cnt" FROM "user" "User" WHERE "User"."id" = ANY($1) GROUP BY "User"."id"`,
		`SELECT users.id AS users_id, anon_1.n FROM users LEFT OUTER JOIN LATERAL (SELECT count(*) AS n FROM addresses WHERE addresses.user_id = users.id) AS anon_1 ON true WHERE users.name IN ($1, $2) ORDER BY users.id DESC NULLS FIRST`,
		`select current_schema(), current_database(), version(), current_user`,
		`SELECT current_setting('server_version_num')::int`,
		`SELECT to_tsvector('english', body) @@ plainto_tsquery('english', $1), ts_rank_cd(vec, q, 32) FROM docs, to_tsquery($2) q WHERE vec @@ q`,
		`SELECT json_build_object('a', row_to_json(t), 'b', array_agg(x ORDER BY y)) FROM t, unnest(t.xs) AS x`,
		`SELECT ST_AsGeoJSON(geom), ST_Distance(geom, ST_SetSRID(ST_MakePoint($1, $2), 4326)) FROM places WHERE ST_DWithin(geom, $3::geometry(Point, 4326), 100)`,
		`SELECT id, embedding <-> $1::vector(3) AS d FROM items ORDER BY embedding <=> $1 LIMIT 5`,
		`SELECT uuid_generate_v4(), gen_random_uuid(), crypt($1, gen_salt('bf')), digest($2, 'sha256')`,
	)
	wantReplica(t, my,
		"SELECT * FROM `users` WHERE `users`.`deleted_at` IS NULL ORDER BY `users`.`id` LIMIT 1",
		"SELECT count(*) FROM `users` WHERE name LIKE ? AND `users`.`deleted_at` IS NULL",
		"SELECT DATABASE()", "SELECT VERSION()", "SELECT SCHEMA_NAME from Information_schema.SCHEMATA where SCHEMA_NAME LIKE ? ORDER BY SCHEMA_NAME=? DESC,SCHEMA_NAME limit 1",
		"SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ? AND table_type = ?",
		"SELECT column_name, column_default, is_nullable = 'YES', data_type, character_maximum_length, column_type, column_key, extra, column_comment, numeric_precision, numeric_scale , datetime_precision FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ORDINAL_POSITION",
		"SHOW FULL FIELDS FROM `posts`", "SHOW KEYS FROM `posts`", "SHOW CREATE TABLE `posts`",
		"SELECT `posts`.* FROM `posts` WHERE `posts`.`id` IN (1, 2) AND (`posts`.`a` = 'x' OR `posts`.`b` > 5) /* loading for inspect */ LIMIT 11",
		"SELECT `t`.`id`, CAST(DATE_FORMAT(CONVERT_TZ(`t`.`d`, 'UTC', 'Asia/Tokyo'), '%Y-%m-01') AS DATE) AS `m` FROM `t` GROUP BY `m` ORDER BY NULL",
		"SELECT GROUP_CONCAT(DISTINCT `name` ORDER BY `name` DESC SEPARATOR ', '), JSON_EXTRACT(`j`, '$.a'), JSON_UNQUOTE(`j`->'$.b') FROM `t` FORCE INDEX (`i1`, `i2`) WHERE MATCH(`a`, `b`) AGAINST (? IN NATURAL LANGUAGE MODE)",
		"select u1_0.id,u1_0.name from users u1_0 where u1_0.email=? and u1_0.created>=date_sub(now(), interval 7 day) limit ?,?",
		"SELECT IF(a > 1, 'x', 'y'), IFNULL(b, 0), NULLIF(c, ''), CASE d WHEN 1 THEN (2) ELSE (3) END, FIND_IN_SET(?, e), FIELD(f, 1, 2), RAND(), UUID(), MD5(g), SHA2(h, 256), INET_ATON(i) FROM t",
		"SELECT ROUND(AVG(x), 2), STDDEV(x), SUM(IF(y, 1, 0)), MIN(z), MAX(z), BIT_OR(w) FROM t GROUP BY a WITH ROLLUP HAVING SUM(x) > 5",
		"SELECT JSON_ARRAYAGG(a), JSON_OBJECTAGG(b, c), JSON_TYPE(d), LAG(x, 1) OVER (ORDER BY y), FIRST_VALUE(x) OVER w FROM t WINDOW w AS (PARTITION BY z)",
		"SELECT SUBSTRING_INDEX(a, '@', -1), SUBSTR(b, 1, 3), TRIM(LEADING '0' FROM c), LPAD(d, 5, '0'), CONCAT_WS(',', e, f), CHAR_LENGTH(g), LOCATE('a', h), REGEXP_REPLACE(i, 'a', 'b') FROM t",
		"SELECT TIMESTAMPDIFF(MINUTE, a, b), DATEDIFF(c, d), FROM_UNIXTIME(e), STR_TO_DATE(f, '%Y'), LAST_DAY(g), YEARWEEK(h), WEEKDAY(i), EXTRACT(YEAR_MONTH FROM j) FROM t",
		"SELECT ST_Distance_Sphere(a, POINT(?, ?)), ST_AsText(b), MBRContains(c, d) FROM t",
		"SELECT 1", "select 1 from dual", "SELECT NOW(), CURDATE(), CURRENT_TIMESTAMP(6), UTC_TIMESTAMP()",
	)
	wantReplica(t, classify.Generic,
		`SELECT "id", "name" FROM "users" WHERE "id" = ? AND "deleted" = 0 ORDER BY "id" DESC LIMIT 10 OFFSET 20`,
		`SELECT a.id, count(b.id) AS n FROM a LEFT JOIN b ON b.a_id = a.id GROUP BY a.id HAVING count(b.id) > 1`,
		`SELECT coalesce(sum(x), 0), upper(name), abs(y) FROM t WHERE x IN (SELECT x FROM u) UNION ALL SELECT 1, 'a', 2`,
	)
}
