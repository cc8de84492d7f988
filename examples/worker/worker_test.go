package worker

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/examples/lagging"
)

// A job is run by another process as soon as it is in the queue.
func TestJobFindsWhatItIsAbout(t *testing.T) {
	c := lagging.Start(t, "CREATE TABLE users (id serial PRIMARY KEY, name text NOT NULL)")
	app, worker := lagging.Process(t, c), lagging.Process(t, c)
	queue := make(chan []byte, 1)
	put := func(payload []byte) error { queue <- payload; return nil }
	for i := range 10 {
		want, got := fmt.Sprint("user ", i), ""
		if err := SignUp(t.Context(), app, put, want); err != nil {
			t.Fatal(err)
		}
		if err := Work(t.Context(), worker, <-queue, func(name string) error { got = name; return nil }); err != nil || got != want {
			t.Errorf("the job greets %q, %v; want %q", got, err, want)
		}
	}

	// From here on the replica has nothing that is new. What it greets with ends the job, which may not write.
	lagging.Stop(t, c)
	if err := SignUp(t.Context(), app, put, "one more"); err != nil {
		t.Fatal(err)
	}
	payload := <-queue
	failed := errors.New("no mail today")
	if err := Work(t.Context(), worker, payload, func(string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}

	// Without the token the user is not there yet; and that binds no later job.
	var job Job
	if err := json.Unmarshal(payload, &job); err != nil {
		t.Fatal(err)
	}
	job.Context = nil
	payload, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	if err := Work(t.Context(), worker, payload, func(string) error { return nil }); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("error %v, where the replica cannot have the user", err)
	}

	// A token that was damaged on the way asks for all that there is.
	job.Context = carrier{replicated.TokenKey: "damaged"}
	if payload, err = json.Marshal(job); err != nil {
		t.Fatal(err)
	}
	if err := Work(context.WithoutCancel(t.Context()), worker, payload, func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}
