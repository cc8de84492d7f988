package replicated

import "context"

// Run runs fn in a session of its own: a job, a message, a task of a worker that
// lives long. Reads in it see its writes, and nothing of it is left to the job after
// it. It returns what fn returns.
func Run(ctx context.Context, fn func(context.Context) error) error {
	ctx, _ = WithSession(ctx)
	return fn(ctx)
}

// RunReadOnly is [Run] for a job that must not write: whatever is not a proven read
// fails with [ErrReadOnly] before it leaves the process.
func RunReadOnly(ctx context.Context, fn func(context.Context) error) error {
	return Run(WithReadOnly(ctx), fn)
}
