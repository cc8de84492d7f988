// Package demo is the command "replicated demo": it starts a cluster, uses it
// through the driver, breaks it, and shows what went where and what was promised.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit statuses of the command.
const (
	exitHeld        = 0   // every promise that was shown held
	exitBroken      = 1   // one did not, or the demo could not be run
	exitUsage       = 2   // the command line
	exitInterrupted = 130 // by Ctrl-C
)

// Main runs the command and returns its exit status. When it returns, the servers
// that it started are stopped and their files removed.
func Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("replicated demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	engine := flags.String("engine", "", "postgres, mariadb or sqlite (default: the first that this machine has)")
	plain := flags.Bool("plain", false, "no colours and no moving parts, as when the output is no terminal")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "usage: replicated demo [flags]\n\n"+
			"Starts a primary with two replicas on this machine, uses and breaks it, shows what\n"+
			"went where, and cleans up: under 45 seconds. The exit status is 0 if every promise\n"+
			"that was shown held.\n\nflags:\n")
		flags.PrintDefaults()
	}
	for _, a := range args {
		if a == "-h" || a == "-help" || a == "--help" {
			flags.SetOutput(stdout)
		}
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitHeld
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "replicated demo: no argument is expected, and there is %q: did you mean -engine?\n", flags.Arg(0))
		return exitUsage
	}
	candidates, err := enginesFor(*engine)
	if err != nil {
		fmt.Fprintln(stderr, "replicated demo:", err)
		return exitUsage
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{screen: newScreen(stdout, *plain), engines: candidates, pace: showPace}
	return status(ctx, d.run(ctx), stderr)
}

// status says how a run has ended, and returns the exit status for it.
func status(ctx context.Context, err error, stderr io.Writer) int {
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "\nreplicated demo: interrupted; its servers are stopped and their files removed")
		return exitInterrupted
	}
	if err != nil {
		fmt.Fprintln(stderr, "\nreplicated demo:", err)
		return exitBroken
	}
	return exitHeld
}
