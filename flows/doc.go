// Package flows has the test of what the driver promises across processes: users
// of a small web application that runs as two processes, on a real PostgreSQL
// primary whose replicas are 300 ms behind. Each request of a user goes to
// either process, and no read may be older than what the user has written.
//
// The application is in package app. The same application runs without the
// middleware, and with a cookie that keeps a user on the primary for five
// seconds, so that it can be seen what the middleware is for and what it saves.
//
//	go test -v .
//	REPLICATED_FLOWS=10000 go test -v -timeout 2h -run TestFlows .
//
// docs/flows.md tells what is measured and what came out of it.
package flows
