package app

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sqlreplicated/replicated"
)

// Variable holds a [Config] as JSON in the environment of a process that is to be
// the application.
const Variable = "REPLICATED_FLOWS_APP"

// StatsPath answers [Stats], for the tests only.
const StatsPath = "/stats"

// Config is what a process is started with.
type Config struct {
	DSN    string
	Sticky Sticky
	// Keys sign cookies and headers, MaxAge is how long they live.
	Keys   [][]byte
	MaxAge time.Duration
	// Redis is the address of the store, and StoreTimeout how long it is waited for; 0:
	// the middleware's default.
	Redis        string
	StoreTimeout time.Duration
}

// Main is the whole life of a process: it listens on a free port of loopback, says on
// standard output which, and serves until it is told to end by a signal, or until
// its standard input ends, as it does when the process that began it is gone. It
// returns the exit code.
func Main(config string) int {
	log.SetFlags(0)
	if err := run(config); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func run(text string) (err error) {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()

	counted := newCounts()
	db, cluster, err := open(c.DSN, counted)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	application, end, err := c.around(ctx, routes(notes{db}), db, counted)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	mux := http.NewServeMux()
	mux.Handle("/", application)
	mux.HandleFunc("GET "+StatsPath, func(w http.ResponseWriter, r *http.Request) {
		// A connection, so that a process that nobody uses yet looks about.
		if err := db.PingContext(r.Context()); err != nil {
			failed(w, err)
			return
		}
		answer(w, counted.snapshot(cluster.Stats()))
	})
	return serve(ctx, mux)
}

func open(dsn string, counted *counts) (*sql.DB, *replicated.Cluster, error) {
	cfg, err := replicated.ParseDSN(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg.Observe = &replicated.Observer{Routed: counted.routed}
	connector, err := replicated.NewConnector(cfg)
	if err != nil {
		return nil, nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	return db, connector.Cluster(), nil
}

// serve serves until ctx ends, and then what has been begun.
func serve(ctx context.Context, h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(bound)
}
