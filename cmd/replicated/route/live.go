package route

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// askTimeout is how long a server may take for everything.
const askTimeout = time.Minute

// ask reads what a live server has counted: pg_stat_statements of PostgreSQL,
// performance_schema's digests of MySQL and MariaDB. Only the current database
// counts, or all of a MySQL server if the DSN names none.
func (j *job) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	connector, d, err := liveConnector(j.dsn)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if d != classify.Postgres {
		var version string
		if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
			return fmt.Errorf("the server of -dsn: %w", err)
		}
		d = classify.MySQL
		if strings.Contains(version, "MariaDB") {
			d = classify.MariaDB
		}
	}
	if j.dialectSet {
		d = j.options.dialect
	}
	j.begin(d, false)
	j.live, j.log = true, true
	if d == classify.Postgres {
		j.source = "pg_stat_statements"
		return j.askPostgres(ctx, db)
	}
	j.source = "performance_schema digests"
	return j.askMySQL(ctx, db)
}

// liveConnector tells the two drivers' DSNs apart: those of lib/pq are URLs, or
// pairs with blanks between them.
func liveConnector(dsn string) (driver.Connector, classify.Dialect, error) {
	if isPostgresDSN(dsn) {
		c, err := pq.NewConnector(dsn)
		if err != nil {
			// The driver's error may quote the DSN, and with it a password.
			return nil, 0, fmt.Errorf("%w: -dsn cannot be read as one of github.com/lib/pq", errUsage)
		}
		return c, classify.Postgres, nil
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: -dsn is neither one of github.com/lib/pq (postgres://…, or host=… dbname=…) nor one of github.com/go-sql-driver/mysql (user@tcp(host)/database)", errUsage)
	}
	c, err := mysql.NewConnector(cfg)
	return c, classify.AnyMySQL, err
}

func isPostgresDSN(dsn string) bool {
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimSpace(dsn), "=")
	switch strings.TrimSpace(first) {
	case "host", "hostaddr", "port", "user", "password", "dbname", "sslmode", "service", "application_name", "connect_timeout":
		return true
	}
	return false
}

const pgStatements = `SELECT s.query, s.calls, s.%s FROM pg_stat_statements s ` +
	`JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() AND s.query IS NOT NULL`

func (j *job) askPostgres(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, fmt.Sprintf(pgStatements, "total_exec_time"))
	var e *pq.Error
	if errors.As(err, &e) && e.Code == "42703" {
		// Version 1.7 and older, of PostgreSQL 12, has another name for it.
		rows, err = db.QueryContext(ctx, fmt.Sprintf(pgStatements, "total_time"))
	}
	if errors.As(err, &e) && (e.Code == "42P01" || e.Code == "55000") {
		return fmt.Errorf("pg_stat_statements is not there: add it to shared_preload_libraries, and run CREATE EXTENSION pg_stat_statements in this database: %w", err)
	}
	if err != nil {
		return fmt.Errorf("pg_stat_statements: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var calls int64
		var ms float64
		if err := rows.Scan(&text, &calls, &ms); err != nil {
			return err
		}
		if text == "<insufficient privilege>" {
			j.skipped++
			continue
		}
		e := entry{text: text, calls: max(1, calls), took: time.Duration(ms * float64(time.Millisecond))}
		if err := j.take(&e); err != nil {
			return err
		}
	}
	return rows.Err()
}

// The time is in picoseconds, as an unsigned number. The row without a digest is
// what found no place in the table.
const mysqlDigests = `SELECT DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_statements_summary_by_digest ` +
	`WHERE DIGEST_TEXT IS NOT NULL AND COUNT_STAR > 0 AND (DATABASE() IS NULL OR SCHEMA_NAME = DATABASE())`

func (j *job) askMySQL(ctx context.Context, db *sql.DB) error {
	var on bool
	if err := db.QueryRowContext(ctx, "SELECT @@performance_schema").Scan(&on); err != nil {
		return fmt.Errorf("performance_schema: %w", err)
	}
	if !on {
		return errors.New("performance_schema is off: start the server with performance_schema=ON")
	}
	rows, err := db.QueryContext(ctx, mysqlDigests)
	if err != nil {
		return fmt.Errorf("performance_schema: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var calls, ps uint64
		if err := rows.Scan(&text, &calls, &ps); err != nil {
			return err
		}
		e := entry{
			text:  text,
			calls: int64(min(calls, math.MaxInt64)),
			took:  time.Duration(min(ps/1000, math.MaxInt64)),
			// A digest that was longer than max_digest_length ends so; a list of
			// values has its dots in parentheses.
			cutOff: strings.HasSuffix(text, "..."),
		}
		if err := j.take(&e); err != nil {
			return err
		}
	}
	return rows.Err()
}
