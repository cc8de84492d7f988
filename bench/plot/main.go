// Command plot draws what TestOffload has measured: the share of reads on replicas
// against lag, for each policy. In the directory bench:
//
//	go run ./plot testdata/offload.tsv ../docs/img/offload.svg
package main

import (
	"bytes"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plot figures.tsv picture.svg")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	figures, err := parse(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, draw(figures), 0o644)
}
