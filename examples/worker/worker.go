// Package worker is a program that takes jobs from a queue, and one that puts them in:
// a job finds what was committed before it was put in, in whatever process it runs.
package worker

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/sqlreplicated/replicated"
)

// Job is what the queue keeps, as JSON.
type Job struct {
	Kind    string  `json:"kind"`
	User    int64   `json:"user"`
	Context carrier `json:"context,omitempty"` // beside a trace, say
}

type carrier map[string]string

func (c carrier) Get(key string) string { return c[key] }
func (c carrier) Set(key, value string) { c[key] = value }

// SignUp adds a user, and a job that greets her. The token is made after the commit:
// it tells of what the session has written until then.
func SignUp(ctx context.Context, db *sql.DB, put func(payload []byte) error, name string) error {
	return replicated.Run(ctx, func(ctx context.Context) error {
		job := Job{Kind: "greet", Context: carrier{}}
		err := db.QueryRowContext(ctx, "INSERT INTO users (name) VALUES ($1) RETURNING id", name).Scan(&job.User)
		if err != nil {
			return err
		}
		_ = replicated.Inject(ctx, job.Context) // with an error the job reads all that is committed by then
		payload, err := json.Marshal(job)
		if err != nil {
			return err
		}
		return put(payload)
	})
}

// Work runs a job. Nothing that it writes binds the reads of the next one; a job that is
// not meant to write cannot.
func Work(ctx context.Context, db *sql.DB, payload []byte, greet func(name string) error) error {
	var job Job
	if err := json.Unmarshal(payload, &job); err != nil {
		return err
	}
	ctx, _ = replicated.Extract(replicated.WithCaller(ctx, "job:"+job.Kind), job.Context) // likewise
	return replicated.RunReadOnly(ctx, func(ctx context.Context) error {
		var name string
		if err := db.QueryRowContext(ctx, "SELECT name FROM users WHERE id = $1", job.User).Scan(&name); err != nil {
			return fmt.Errorf("user %d: %w", job.User, err)
		}
		return greet(name)
	})
}
