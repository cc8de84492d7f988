package grpc

import (
	"context"
	"database/sql"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sqlreplicated/replicated"
	"github.com/sqlreplicated/replicated/examples/lagging"
)

// stock is a service that keeps how many there are of a thing, with a handle of its own.
type stock struct{ db *sql.DB }

const (
	read = "SELECT count FROM stock WHERE thing = $1"
	take = "UPDATE stock SET count = count - 1 WHERE thing = $1"
)

func (s *stock) count(ctx context.Context, thing string) (*wrapperspb.Int64Value, error) {
	n, err := count(ctx, s.db, thing)
	return wrapperspb.Int64(n), err
}

func (s *stock) take(ctx context.Context, thing string) (*wrapperspb.Int64Value, error) {
	if _, err := s.db.ExecContext(ctx, take, thing); err != nil {
		return nil, err
	}
	return s.count(ctx, thing)
}

// takeAndFail has written when it fails.
func (s *stock) takeAndFail(ctx context.Context, thing string) (*wrapperspb.Int64Value, error) {
	if _, err := s.take(ctx, thing); err != nil {
		return nil, err
	}
	return nil, status.Error(codes.ResourceExhausted, "the shelf broke")
}

// desc is what protoc would write.
func desc() *grpc.ServiceDesc {
	method := func(name string, call func(*stock, context.Context, string) (*wrapperspb.Int64Value, error)) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(srv any, ctx context.Context, dec func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			in := new(wrapperspb.StringValue)
			if err := dec(in); err != nil {
				return nil, err
			}
			handler := func(ctx context.Context, req any) (any, error) {
				return call(srv.(*stock), ctx, req.(*wrapperspb.StringValue).GetValue())
			}
			if intercept == nil {
				return handler(ctx, in)
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/Stock/" + name}, handler)
		}}
	}
	return &grpc.ServiceDesc{ServiceName: "Stock", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{
		method("Count", (*stock).count), method("Take", (*stock).take), method("TakeAndFail", (*stock).takeAndFail),
	}}
}

// serve starts the service and returns a connection to it.
func serve(t *testing.T, db *sql.DB, server []grpc.ServerOption, client ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(server...)
	s.RegisterService(desc(), &stock{db})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func call(ctx context.Context, conn *grpc.ClientConn, method string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	res := new(wrapperspb.Int64Value)
	err := conn.Invoke(ctx, "/Stock/"+method, wrapperspb.String("book"), res)
	return res.GetValue(), err
}

func count(ctx context.Context, db *sql.DB, thing string) (n int64, err error) {
	err = db.QueryRowContext(ctx, read, thing).Scan(&n)
	return n, err
}

func want(t *testing.T, what string, want int64) func(int64, error) {
	return func(got int64, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", what, got, err, want)
		}
	}
}

// A shop and a service write to the same table, each through a handle of its own.
func TestCallerAndCalleeSeeEachOthersWrites(t *testing.T) {
	c := lagging.Start(t, "CREATE TABLE stock (thing text PRIMARY KEY, count int NOT NULL)", "INSERT INTO stock VALUES ('book', 100)")
	shop, service := lagging.Process(t, c), lagging.Process(t, c)
	conn := serve(t, service, []grpc.ServerOption{grpc.UnaryInterceptor(Server)}, grpc.WithUnaryInterceptor(Client))
	plain := serve(t, service, nil)
	other := lagging.Process(t, c)
	others := serve(t, other, []grpc.ServerOption{grpc.UnaryInterceptor(Server)}, grpc.WithUnaryInterceptor(Client))
	left := int64(100)
	for range 5 {
		ctx, _ := replicated.WithSession(metadata.AppendToOutgoingContext(t.Context(), "user", "7"))

		// The call reads what its caller has written.
		if _, err := shop.ExecContext(ctx, take, "book"); err != nil {
			t.Fatal(err)
		}
		left--
		want(t, "the service after the shop's write", left)(call(ctx, conn, "Count"))

		// The caller reads what its call has written.
		ctx, session := replicated.WithSession(t.Context())
		left--
		want(t, "the call's own read", left)(call(ctx, conn, "Take"))
		want(t, "the shop after the call", left)(count(ctx, shop, "book"))
		if session.Wrote() {
			t.Error("the call's write counts as the shop's")
		}

		// Also if the call has failed; its status is as it was.
		ctx, _ = replicated.WithSession(t.Context())
		left--
		if _, err := call(ctx, conn, "TakeAndFail"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the call ends in %v", err)
		}
		want(t, "the shop after a call that failed", left)(count(ctx, shop, "book"))

		// Passed on: the next call has what the one before it has written.
		want(t, "the next call", left)(call(ctx, conn, "Count"))
	}

	// Somebody else is not bound by that, nor is who calls without interceptors.
	lagging.Stop(t, c)
	old, err := count(t.Context(), other, "book")
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := replicated.WithSession(t.Context())
	want(t, "the call's own read", left-1)(call(ctx, plain, "Take"))
	want(t, "without interceptors the shop", old)(count(ctx, other, "book"))
	somebody, _ := replicated.WithSession(t.Context())
	want(t, "with them, and with the session of somebody else, the service", old)(call(somebody, others, "Count"))
	if old == left-1 {
		t.Error("the replica is not behind")
	}
}
