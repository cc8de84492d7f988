package difftest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// session is one connection to one server, in one mode, which is opened anew when
// a statement has broken it.
type session struct {
	db    *sql.DB
	setup []string
	conn  *sql.Conn
	fresh bool // opened anew since the last look
}

func (s *session) open(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	for _, text := range s.setup {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	s.conn, s.fresh = conn, true
	return nil
}

// close gives the connection up; the server ends the session.
func (s *session) close() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
	s.conn = nil
}

// run runs a text and reads all that it returns.
func (s *session) run(ctx context.Context, text string) error {
	if err := s.open(ctx); err != nil {
		return fmt.Errorf("difftest: no connection: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	rows, err := s.conn.QueryContext(ctx, text)
	if err == nil {
		for more := true; more; more = rows.NextResultSet() {
			for rows.Next() {
				continue
			}
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil && s.broken(ctx, err) {
		s.close()
	}
	return err
}

func (s *session) broken(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || !isServerError(err) ||
		s.conn.Raw(func(c any) error {
			if v, ok := c.(driver.Validator); ok && !v.IsValid() {
				return errors.New("not valid")
			}
			return nil
		}) != nil
}

// state is what was looked at, a line each.
type state []string

// changes returns what is in one of the states only.
func changes(before, after state) string {
	var b strings.Builder
	for _, line := range before {
		if !slices.Contains(after, line) {
			fmt.Fprintf(&b, "\n\t- %s", line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			fmt.Fprintf(&b, "\n\t+ %s", line)
		}
	}
	return b.String()
}

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// look runs queries and makes lines of all their rows.
func look(ctx context.Context, q querier, queries ...string) (state, error) {
	var s state
	for _, query := range queries {
		rows, err := q.QueryContext(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
		cols, err := rows.Columns()
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		values := make([]sql.NullString, len(cols))
		into := make([]any, len(cols))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			fields := make([]string, len(values))
			for i, v := range values {
				fields[i] = v.String
			}
			s = append(s, strings.Join(fields, " "))
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
	}
	return s, nil
}
