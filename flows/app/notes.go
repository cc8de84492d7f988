package app

import (
	"context"
	"database/sql"
)

// Schema makes the table.
const Schema = `CREATE TABLE notes (
	owner text   NOT NULL,
	slot  int    NOT NULL,
	value bigint NOT NULL,
	PRIMARY KEY (owner, slot)
)`

// Note is what a user has written under a number. The zero value is what is there
// before anything was written.
type Note struct {
	Slot  int   `json:"slot"`
	Value int64 `json:"value"`
}

// notes is the application's data access.
type notes struct{ db *sql.DB }

func (n notes) set(ctx context.Context, owner string, note Note) error {
	_, err := n.db.ExecContext(ctx, `INSERT INTO notes (owner, slot, value) VALUES ($1, $2, $3)
		ON CONFLICT (owner, slot) DO UPDATE SET value = excluded.value`, owner, note.Slot, note.Value)
	return err
}

func (n notes) of(ctx context.Context, owner string) ([]Note, error) {
	rows, err := n.db.QueryContext(ctx, `SELECT slot, value FROM notes WHERE owner = $1 ORDER BY slot`, owner)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := []Note{}
	for rows.Next() {
		var note Note
		if err := rows.Scan(&note.Slot, &note.Value); err != nil {
			return nil, err
		}
		found = append(found, note)
	}
	return found, rows.Err()
}
