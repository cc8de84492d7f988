package httpsticky

import "context"

// hold waits until nobody needs a token any more, for Options.Hold at most: where that
// is negative, only whether it is so is told.
func (x *exchange) hold() {
	// Neither a deadline of the handler's nor a client that has gone makes a replica have
	// the write sooner; others may wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.scope), x.h.o.Hold)
	defer cancel()
	err := x.session.Settle(ctx)
	if err != nil {
		// Where it can't be told, what is left is to let the time pass in which a replica
		// may lack it.
		<-ctx.Done()
	}
	x.tell(EventHeld, err)
}
