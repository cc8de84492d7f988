// Command replicated shows what the replicated driver does.
//
//	go run ./cmd/replicated demo
//
// It is a module of its own, so that what it needs (an embedded database) does
// not become a dependency of those who import the driver.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/sqlreplicated/replicated/cmd/replicated/demo"
	"github.com/sqlreplicated/replicated/cmd/replicated/route"
)

// The exit statuses of every command.
const (
	exitOK    = 0
	exitUsage = 2
)

// command is one sub-command. It gets what stands behind its name and returns
// the exit status.
type command struct {
	name    string
	summary string
	run     func(args []string, stdout, stderr io.Writer) int
}

var commands = []command{
	{name: "demo", summary: "start a cluster, use it, break it, and show what went where", run: demo.Main},
	{name: "route", summary: "tell which statements of scripts, logs, records or a server would run on replicas", run: route.Main},
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return exitOK
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "replicated: there is no command %q\n\n", args[0])
	usage(stderr)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: replicated <command> [flags]\n\ncommands:\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-8s  %s\n", c.name, c.summary)
	}
	fmt.Fprintf(w, "  %-8s  %s\n", "help", "this text; replicated <command> -h tells its flags")
}
