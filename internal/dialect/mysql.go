package dialect

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

func mysqlDialect(kind classify.Dialect, identify func(context.Context, driver.Conn) (Identity, error)) *Dialect {
	return &Dialect{
		Kind:     kind,
		identify: identify,
		sample: func(ctx context.Context, conn driver.Conn) (Identity, error) {
			return sampleMySQL(ctx, conn, identify)
		},
		fence:     fenceMySQL,
		settings:  mysqlSettings,
		apply:     applyMySQL,
		catalog:   catalogMySQL,
		relations: relationsMySQL,
		beats:     mysqlBeats,
		sources:   sourcesMySQL,
		codes:     func(err error) (ErrorClass, bool) { return mysqlCode(kind, err) },
	}
}

// fenceMySQL sets autocommit right first, since turning it on would end a
// transaction, which could only be one that an init_connect has left.
func fenceMySQL(ctx context.Context, conn driver.Conn, id Identity) error {
	if id.AutocommitOff || id.Chains {
		if err := exec(ctx, conn, "SET SESSION autocommit = 1, SESSION completion_type = 'NO_CHAIN'"); err != nil {
			return err
		}
	}
	// The statement, not the variable, whose name depends on the version
	// (tx_read_only, transaction_read_only).
	return exec(ctx, conn, "SET SESSION TRANSACTION READ ONLY")
}

// mysqlSettings are the variables that are replayed. collation_connection
// implies character_set_connection.
var mysqlSettings = []setting{
	mysqlSetting(classify.Names, "character_set_client", "character_set_results", "collation_connection"),
	mysqlSetting(classify.TimeZone, "time_zone"),
	mysqlSetting(classify.SQLMode, "sql_mode"),
	{v: classify.Database, names: []string{""}, exprs: []string{"DATABASE()"}},
}

func mysqlSetting(v classify.Vars, names ...string) setting {
	exprs := make([]string, len(names))
	for i, n := range names {
		exprs[i] = "@@session." + n
	}
	return setting{v: v, names: names, exprs: exprs}
}

// applyMySQL assigns all variables in one SET; the database takes a USE, after
// it, because its name is then read in the character set that it came in.
func applyMySQL(ctx context.Context, conn driver.Conn, todo []assignment) error {
	var sets []string
	use := ""
	for _, a := range todo {
		if a.v == classify.Database {
			name, err := quoteMySQLName(a.cell)
			if err != nil {
				return err
			}
			use = "USE " + name
			continue
		}
		value, err := quoteMySQL(a.cell)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		sets = append(sets, "SESSION "+a.name+" = "+value)
	}
	if len(sets) > 0 {
		if err := exec(ctx, conn, "SET "+strings.Join(sets, ", ")); err != nil {
			return err
		}
	}
	if use != "" {
		return exec(ctx, conn, use)
	}
	return nil
}

// quoteMySQL returns the value of a variable as a literal. All that it has to
// hold are names of zones, modes and character sets; anything that could end a
// literal, or begin an escape under one sql_mode and not under another, is
// refused.
func quoteMySQL(c cell) (string, error) {
	if c.null {
		return "NULL", nil
	}
	for _, b := range []byte(c.text) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("_+-:/,. ", b) >= 0:
		default:
			return "", errors.New("value with a character that is not replayed")
		}
	}
	return "'" + c.text + "'", nil
}

// quoteMySQLName returns a database's name in backquotes, which are read alike
// under every sql_mode. In some character sets (gbk, sjis) the byte of a
// backquote may be the second one of a character, so a name with that byte and
// with bytes beyond ASCII is refused rather than guessed at.
func quoteMySQLName(c cell) (string, error) {
	if c.null || c.text == "" {
		return "", errors.New("a connection that has a database cannot be brought back to none")
	}
	if strings.Contains(c.text, "`") && strings.IndexFunc(c.text, func(r rune) bool { return r > 0x7f }) >= 0 {
		return "", errors.New("database name that cannot be quoted safely")
	}
	return "`" + strings.ReplaceAll(c.text, "`", "``") + "`", nil
}
