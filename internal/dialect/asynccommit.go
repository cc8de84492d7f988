package dialect

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// ChangesSynchronousCommit reports whether the database has something that may
// turn synchronous_commit off behind the back of a session's texts: a function or
// procedure that names it in its text or has it in a SET clause; a view, rule,
// column's default or policy that names it; or a setting of a role or of the
// database. Then a commit may be acknowledged before Written has reached it
// although the session's synchronous_commit was on when it was opened, and no
// text of its own names it.
//
// It is one query, which needs no privilege. A name put together at run time is
// not seen, and neither is what the server's own configuration says (that shows
// in [Identity.AsyncCommit]). Databases other than PostgreSQL: false.
func (d *Dialect) ChangesSynchronousCommit(ctx context.Context, conn driver.Conn) (bool, error) {
	if d.Kind != classify.Postgres {
		return false, nil
	}
	row, err := queryRow(ctx, conn, postgresSynchronousCommit, 1)
	if err != nil {
		return false, fmt.Errorf("replicated: reading what changes synchronous_commit: %w", err)
	}
	return row[0].on(), nil
}

// postgresSynchronousCommit looks at everything that is not built in (OIDs from
// 16384 on). What was parsed when it was defined (views, defaults, policies, the
// bodies of SQL functions since PostgreSQL 14) is kept as a tree, in which a
// constant stands as a list of its bytes (outDatum in nodes/outfuncs.c). A
// function's row is taken whole, since its column prosqlbody is not in all
// versions.
var postgresSynchronousCommit = `SELECT (EXISTS (SELECT 1 FROM pg_catalog.pg_proc p
		WHERE p.oid >= 16384 AND (p.prosrc ~* 'synchronous_commit' OR p.proconfig::pg_catalog.text ~* 'synchronous_commit'
			OR pg_catalog.to_jsonb(p) ->> 'prosqlbody' ~ @tree@))
	OR EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite r WHERE r.oid >= 16384 AND (r.ev_action::pg_catalog.text ~ @tree@ OR r.ev_qual::pg_catalog.text ~ @tree@))
	OR EXISTS (SELECT 1 FROM pg_catalog.pg_attrdef a WHERE a.adbin::pg_catalog.text ~ @tree@)
	OR EXISTS (SELECT 1 FROM pg_catalog.pg_policy l WHERE l.polqual::pg_catalog.text ~ @tree@ OR l.polwithcheck::pg_catalog.text ~ @tree@)
	OR EXISTS (SELECT 1 FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) c
		WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()))
			AND c ~* '^synchronous_commit=' AND pg_catalog.lower(c) !~ '=(on|local|remote_write|remote_apply)$'))::pg_catalog.text`

func init() {
	bytes := make([]string, 0, len("synchronous_commit"))
	for _, b := range []byte("synchronous_commit") {
		if upper := b - 'a' + 'A'; 'a' <= b && b <= 'z' {
			bytes = append(bytes, fmt.Sprintf("(%d|%d)", b, upper))
			continue
		}
		bytes = append(bytes, fmt.Sprint(b))
	}
	postgresSynchronousCommit = strings.ReplaceAll(postgresSynchronousCommit, "@tree@", "' "+strings.Join(bytes, " ")+" '")
}
