package httpsticky

import (
	"context"

	"github.com/sqlreplicated/replicated"
)

// hold waits until nobody needs a token any more, for Options.Hold at most: where that
// is negative, only whether it is so is told.
func (x *exchange) hold() {
	session := x.session
	if !session.Wrote() {
		// What it has adopted was written by others, before now, wherever that was.
		var apart context.Context
		apart, session = replicated.WithSession(context.Background())
		replicated.Wrote(apart)
	}
	ctx, cancel := context.WithTimeout(x.scope, x.h.o.Hold)
	defer cancel()
	err := session.Settle(ctx)
	if err != nil {
		// Where it can't be told, what is left is to let the time pass in which a replica
		// may lack it.
		<-ctx.Done()
	}
	x.tell(EventHeld, err)
}
