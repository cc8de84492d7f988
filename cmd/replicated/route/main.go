// Package route is the command "replicated route": it reads statements from
// scripts, lists, logs or a live server and tells which of them would run on
// replicas, and why the others stay on the primary. Of the records of package record
// it tells the same by caller.
package route

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// The exit statuses of the command.
const (
	exitOK    = 0
	exitFault = 1 // an input could not be read
	exitUsage = 2 // the command line
)

// options is the command line.
type options struct {
	dialect    classify.Dialect
	dialectSet bool
	input      *format // nil: a log, to be detected
	output     string
	top        int
	values     bool
	prefix     *regexp.Regexp
	dsn        string
	files      []string
}

const usageText = `usage: replicated route [flags] [FILE…]

Tells which statements would run on replicas, which stay on the primary, and why.
It reads the files, or standard input if there is none or for "-", and asks no
database unless there is -dsn.

  replicated route -dialect postgres queries.sql
  replicated route -input log /var/log/postgresql/postgresql-18-main.log
  replicated route -input log -format html slow.log > report.html
  replicated route -dsn 'postgres://app@db1/shop'
  replicated route -input record routes-*.jsonl

flags:
`

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	return run(args, os.Stdin, stdout, stderr)
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errTold):
		return exitUsage
	case err != nil:
		fmt.Fprintln(stderr, "replicated route:", err)
		return exitUsage
	}
	out := bufio.NewWriterSize(stdout, 64<<10)
	j := &job{options: o, stdin: stdin, stderr: stderr, out: out}
	err = j.run()
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		// Whoever read the output has had enough of it.
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "replicated route:", err)
		return exitUsage
	default:
		fmt.Fprintln(stderr, "replicated route:", err)
		return exitFault
	}
}

var (
	// errTold: the flag package has told the user already.
	errTold = errors.New("the command line is wrong")
	// errUsage is wrapped by mistakes of the command line that show late.
	errUsage = errors.New("usage")
)

func parseOptions(args []string, stdout, stderr io.Writer) (*options, error) {
	flags := flag.NewFlagSet("replicated route", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dialect := flags.String("dialect", "", "`name` of the dialect: postgres, mysql, mariadb or generic (default: that of the log or the server, else generic, which trusts the fewest statements)")
	input := flags.String("input", "sql", "`format` of the input: sql (scripts), lines (a statement a line, with \\n \\t \\r \\0 \\\\), pglog, pgcsv, pgjson, mysqlgeneral, mysqlslow, record (what package record has written), or log (one of the logs or a record, found out)")
	output := flags.String("format", "text", "`format` of the output: text or html (a report), or json (an object for each statement)")
	top := flags.Int("top", 5, "how `many` statements a report shows for each reason")
	values := flags.Bool("values", false, "show statements in reports as they came, with the values in them")
	prefix := flags.String("prefix", "", "log_line_prefix of a PostgreSQL server, if its pid is not found without")
	dsn := flags.String("dsn", "", "ask a live server for the statements it counted: a DSN of github.com/lib/pq or github.com/go-sql-driver/mysql")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usageText)
		flags.PrintDefaults()
	}
	for _, a := range args {
		if a == "-h" || a == "-help" || a == "--help" {
			flags.SetOutput(stdout)
		}
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errTold
	}
	o := &options{output: *output, top: *top, values: *values, dsn: *dsn, files: flags.Args()}
	if *dialect != "" {
		d, ok := classify.ParseDialect(*dialect)
		if !ok {
			return nil, fmt.Errorf("there is no dialect %q: want postgres, mysql, mariadb or generic", *dialect)
		}
		o.dialect, o.dialectSet = d, true
	}
	if *input != "log" {
		f, err := formatNamed(*input)
		if err != nil {
			return nil, err
		}
		o.input = f
	}
	switch o.output {
	case "text", "json", "html":
	default:
		return nil, fmt.Errorf("there is no output format %q: want text, json or html", o.output)
	}
	if o.top < 0 {
		return nil, errors.New("-top is negative")
	}
	if *prefix != "" {
		p, err := parsePrefix(*prefix)
		if err != nil {
			return nil, fmt.Errorf("-prefix: %w", err)
		}
		o.prefix = p
	}
	if o.dsn != "" && len(o.files) > 0 {
		return nil, fmt.Errorf("-dsn asks a server: there is no use for %s", strings.Join(o.files, ", "))
	}
	if len(o.files) == 0 {
		o.files = []string{"-"}
	}
	return o, nil
}
