package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

const figuresFile, pictureFile = "../testdata/offload.tsv", "../../docs/img/offload.svg"

// The picture shows the figures that are in the repository.
func TestPictureIsOfTheFigures(t *testing.T) {
	text, err := os.ReadFile(figuresFile)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(draw(figures), picture) {
		t.Errorf("%s is not what is drawn of %s: run plot", pictureFile, figuresFile)
	}
}

// What is drawn is well-formed, and has a line for each policy in each panel.
func TestDraw(t *testing.T) {
	const table = "engine\tspan_ms\tlag_ms\tpolicy\treads\tshare\tstale\tload\n" +
		"A 1.0\t2000\t5\tproof\t100\t0.99\t0\t1\n" +
		"A 1.0\t2000\t200\tproof\t100\t0.88\t0\t1\n" +
		"A 1.0\t2000\t5\twindow-2s\t100\t0.1\t0\t1\n" +
		"A 1.0\t2000\t200\twindow-2s\t100\t0.2\t7\t1\n" +
		"A 1.0\t10000\t5\tproof\t100\t0.99\t0\t1\n"
	figures, err := parse(strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	picture := draw(figures)
	lines, decoder := 0, xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	if lines != 3 {
		t.Errorf("%d lines, want 3", lines)
	}
	for _, part := range []string{">7 % stale at 200 ms<", "2 s window: 10 % at 5 ms, 20 % at 200 ms (7 % stale at 200 ms)", "A 1.0"} {
		if !bytes.Contains(picture, []byte(part)) {
			t.Errorf("%q is not in the picture", part)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "engine\tspan_ms\tlag_ms\tpolicy\treads\tshare\tstale\tload\n"
	for _, table := range []string{
		"", head, "engine\tlag\nA\t1\n",
		head + "A\t2\t5\tproof\t100\tmost\t0\t1\n",
		head + "A\t2\t5\tproof\t100\n",
	} {
		if _, err := parse(strings.NewReader(table)); err == nil {
			t.Errorf("%q is taken", table)
		}
	}
}
