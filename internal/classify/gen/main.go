// Gen reads what functions a server has, so that package classify knows them.
//
//	go run ./internal/classify/gen postgres -dsn "host=127.0.0.1 user=postgres sslmode=disable"
//	go run ./internal/classify/gen mariadb  -dsn "root@tcp(127.0.0.1:3306)/"
//
// from the root of the repository, against a fresh server of each version that
// is to be known; -dsn may be given several times.
//
// For PostgreSQL it writes functions_postgres_catalog.go: the functions that
// the catalog calls immutable or stable and that no hand-written group of
// functions_*.go has. Names that the file has already stay, so that a run
// against a newer server adds to it; -fresh drops them. The catalog's word is
// weak: a new version may bring a function that is marked stable and yet
// belongs to the session or to the one server. So gen prints
//
//   - what the file has gained and lost: each name gained must be harmless, or
//     go to a group, after which gen is run again;
//   - functions that the catalog does not call harmless and that no group has.
//     They are unknown to the classifier, which is safe, until somebody judges
//     them.
//
// For MariaDB it writes nothing and prints the second list only: the catalog
// there does not tell what a function does. MySQL has no catalog to read;
// functions_mysql.go is kept by hand.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// dsns collects the values of a flag that may be given several times.
type dsns []string

func (d *dsns) String() string     { return strings.Join(*d, " ") }
func (d *dsns) Set(s string) error { *d = append(*d, s); return nil }

// A source is a kind of server that has a catalog of its functions.
type source struct {
	on   string // the constant of package classify for this kind of server
	read func(dsn string) (catalog, error)

	// file is what is written, in the folder of package classify; "" if the
	// catalog is good for a report only. The next two are empty then, too.
	file     string
	variable string   // that the file declares
	sections []string // the reasons of its groups, one group each
}

// catalog is what one server knows.
type catalog struct {
	version  string
	harmless [][]string // for each section of the source
	unjudged []string   // for a human to judge
}

var sources = map[string]source{
	"postgres": postgresSource,
	"mariadb":  mariadbSource,
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 || sources[args[0]].read == nil {
		return fmt.Errorf("want postgres or mariadb, then flags")
	}
	src := sources[args[0]]
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	var dsn dsns
	fs.Var(&dsn, "dsn", "a server to read; may be given several times")
	dir := fs.String("dir", filepath.Join("internal", "classify"), "folder of package classify")
	fresh := fs.Bool("fresh", false, "drop the names that the file has already")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if len(dsn) == 0 {
		return fmt.Errorf("no -dsn")
	}

	byHand, err := handNames(*dir, src.on)
	if err != nil {
		return err
	}
	path := filepath.Join(*dir, src.file)
	old := newList(src)
	if src.file != "" {
		if old, err = readList(path, src); err != nil {
			return err
		}
	}
	list := newList(src)
	if !*fresh {
		list.merge(old)
	}
	var unjudged []string
	for _, d := range dsn {
		c, err := src.read(d)
		if err != nil {
			return err
		}
		list.add(c)
		for _, n := range c.unjudged {
			if !byHand[n] {
				unjudged = append(unjudged, n)
			}
		}
	}
	list.normalize(byHand)

	slices.Sort(unjudged)
	report(out, "in no group, unknown until judged", slices.Compact(unjudged))
	if src.file == "" {
		return nil
	}
	report(out, "gained, harmless until judged otherwise", list.minus(old))
	report(out, "lost", old.minus(list))
	return list.write(path, src, args[0])
}

func report(out io.Writer, what string, names []string) {
	fmt.Fprintf(out, "%d %s\n", len(names), what)
	for _, n := range names {
		fmt.Fprintln(out, "  ", n)
	}
}
