package redisstore

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed common.lua
	commonText string
	//go:embed load.lua
	loadText string
	//go:embed save.lua
	saveText string
	//go:embed swap.lua
	swapText string

	loadScript = newScript(commonText + loadText)
	saveScript = newScript(commonText + saveText)
	swapScript = newScript(swapText)
)

// script is a Lua program and the hash by which a server knows it.
type script struct{ text, hash string }

func newScript(text string) script { return script{text, redis.NewScript(text).Hash()} }

// call is one run of a script.
type call struct {
	keys   []string // all in one slot
	args   []any
	answer *redis.Cmd
}

// run runs the script for all calls, in one round trip to each server, and in a
// second one where a server doesn't know the script yet: it has been started, or
// SCRIPT FLUSH was run. It returns the first error.
func (s *Store) run(ctx context.Context, script script, calls []*call) error {
	s.send(ctx, calls, func(to evaluator, c *call) *redis.Cmd {
		return to.EvalSha(ctx, script.hash, c.keys, c.args...)
	})
	var unknown []*call
	for _, c := range calls {
		if redis.HasErrorPrefix(c.answer.Err(), "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		s.send(ctx, unknown, func(to evaluator, c *call) *redis.Cmd {
			return to.Eval(ctx, script.text, c.keys, c.args...)
		})
	}
	for _, c := range calls {
		if err := c.answer.Err(); err != nil {
			return err
		}
	}
	return nil
}

// evaluator is a client or a pipeline of one.
type evaluator interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
}

// send gives each call its answer, which may be an error.
func (s *Store) send(ctx context.Context, calls []*call, command func(evaluator, *call) *redis.Cmd) {
	if len(calls) == 1 {
		calls[0].answer = command(s.client, calls[0])
		return
	}
	// Its error is that of one of the commands.
	_, _ = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, c := range calls {
			c.answer = command(pipe, c)
		}
		return nil
	})
}
