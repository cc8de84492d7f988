package demo

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// changeLog is the primary's log of committed changes, row by row, as SQLite's own
// hooks report them. Tables have an INTEGER PRIMARY KEY, which is the row's number.
// It is safe for concurrent use.
type changeLog struct {
	mu      sync.Mutex
	commits []commit
	err     error // the first failure of a replica
}

type commit struct {
	at      time.Time
	changes []change
}

// change is one row as it is after the change; no values: the row is gone.
type change struct {
	table  string
	old    int64 // the number that the row had
	values []any
}

// SQLite's codes of operations, SQLITE_DELETE and SQLITE_INSERT.
const (
	opDelete = 9
	opInsert = 18
)

// record has a connection write to the log what it commits. SQLite calls the
// commit hook before it lets another writer in, so that the log is in order.
func (l *changeLog) record(conn sqlite.HookRegisterer) {
	var pending []change // of this connection alone, which runs one call at a time
	conn.RegisterPreUpdateHook(func(d sqlite.SQLitePreUpdateData) {
		if d.DatabaseName != "main" { // a temporary table
			return
		}
		c := change{table: d.TableName, old: d.OldRowID}
		if d.Op == opInsert {
			c.old = d.NewRowID
		}
		if d.Op != opDelete {
			row := make([]any, d.Count())
			if err := d.New(row...); err != nil {
				l.failed(err)
			}
			c.values = row
		}
		pending = append(pending, c)
	})
	conn.RegisterCommitHook(func() int32 {
		if len(pending) > 0 {
			l.mu.Lock()
			l.commits = append(l.commits, commit{time.Now(), pending})
			l.mu.Unlock()
			pending = nil
		}
		return 0 // go on
	})
	conn.RegisterRollbackHook(func() { pending = nil })
}

// after returns the commits from a position on that are older than a time.
func (l *changeLog) after(position int, before time.Time) []commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := position
	for end < len(l.commits) && l.commits[end].at.Before(before) {
		end++
	}
	return l.commits[position:end:end]
}

func (l *changeLog) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("the demo's replication: %w", err)
	}
}

func (l *changeLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// applyEvery is how often a replica looks for changes.
const applyEvery = 10 * time.Millisecond

// follow applies the log to a replica, the lag behind, until ctx ends. While the
// node is down nothing is applied; then it catches up.
func follow(ctx context.Context, f *sqliteFile, l *changeLog, lag time.Duration) {
	db, err := f.direct()
	if err != nil {
		l.failed(err)
		return
	}
	defer db.Close()
	position := 0
	for pause(ctx, applyEvery) == nil {
		if f.dead.Load() {
			continue
		}
		commits := l.after(position, time.Now().Add(-lag))
		if len(commits) == 0 {
			continue
		}
		if err := apply(db, commits); err != nil {
			l.failed(fmt.Errorf("%s: %w", f.name, err))
			return
		}
		position += len(commits)
	}
}

// apply runs commits in one transaction.
func apply(db *sql.DB, commits []commit) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // of what was committed there is nothing to roll back
	for _, c := range commits {
		for _, ch := range c.changes {
			if _, err := tx.Exec("DELETE FROM "+ch.table+" WHERE id = ?", ch.old); err != nil {
				return err
			}
			if ch.values == nil {
				continue
			}
			marks := strings.TrimSuffix(strings.Repeat("?,", len(ch.values)), ",")
			if _, err := tx.Exec("INSERT INTO "+ch.table+" VALUES ("+marks+")", ch.values...); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}
