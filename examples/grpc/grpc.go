// Package grpc has interceptors by which a call and its caller see each other's writes.
//
//	grpc.NewServer(grpc.UnaryInterceptor(Server))
//	grpc.NewClient(target, grpc.WithUnaryInterceptor(Client))
package grpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sqlreplicated/replicated"
)

// carrier has a token travel in the metadata of a call.
type carrier metadata.MD

func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Server gives each call a session, which sees what the caller has written, and sends
// back what the call has: in the trailer, which goes out when it is known, and with an
// error too. What is wrong with a token is no reason to fail: its place is taken by
// everything that anybody has committed by then.
func Server(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	scope, _ := replicated.WithSession(replicated.WithCaller(ctx, info.FullMethod))
	scope, _ = replicated.Extract(scope, carrier(incoming))
	res, err := handler(scope, req)
	trailer := carrier{}
	_ = replicated.Inject(scope, trailer)
	if setErr := grpc.SetTrailer(ctx, metadata.MD(trailer)); err == nil {
		err = setErr
	}
	return res, err
}

// Client sends what the caller's session has written, and has the session adopt what
// the call has written for it, whether it has succeeded or not.
func Client(ctx context.Context, method string, req, res any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	outgoing, _ := metadata.FromOutgoingContext(ctx) // a copy
	if outgoing == nil {
		outgoing = metadata.MD{}
	}
	_ = replicated.Inject(ctx, carrier(outgoing))
	var trailer metadata.MD
	err := invoke(metadata.NewOutgoingContext(ctx, outgoing), method, req, res, cc, append(opts, grpc.Trailer(&trailer))...)
	_ = replicated.SessionFromContext(ctx).AdoptFrom(carrier(trailer))
	return err
}
