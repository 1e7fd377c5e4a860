package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The committed picture shows the imports and the table as they are now.
func TestPictureIsFresh(t *testing.T) {
	t.Parallel()
	want, err := draw(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../pictures/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/pictures/architecture.svg is stale: run make picture")
	}
	decoder := xml.NewDecoder(bytes.NewReader(got))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
}

func TestGraphDrawsFloorsAndWhatTheyImport(t *testing.T) {
	t.Parallel()
	rows := readTable("" +
		"| floor | package | owns | imports of ours |\n" +
		"|---|---|---|---|\n" +
		"| 0 | `internal/low` | the `low` things: all | |\n" +
		"| 1 | `internal/mid` | the middle | `internal/low` |\n" +
		"| 2 | `cmd/top` | the binary | `client` `internal/low` `internal/mid` |\n" +
		"| – | `client` | the client | |\n" +
		"| – | `bench` | measures | `internal/mid` |\n")
	imports := readImports("m/cmd/top fmt m/client m/internal/low m/internal/mid\nm/internal/mid m/internal/low\nm/internal/low\nm/client\nm/bench m/internal/mid\n", "m/")
	got, err := newGraph(rows, imports)
	if err != nil {
		t.Fatal(err)
	}
	want := []pkg{
		{row: row{"client", 2, "the client"}, beside: true},
		{row: row{"cmd/top", 2, "the binary"}, imports: []string{"client", "internal/mid"}},
		{row: row{"internal/low", 0, "the low things: all"}},
		{row: row{"internal/mid", 1, "the middle"}, imports: []string{"internal/low"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pkg{}, row{})); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
}

func TestGraphRefusesImportsThatPointUp(t *testing.T) {
	t.Parallel()
	rows := []row{{name: "low", floor: 0}, {name: "high", floor: 1}}
	if _, err := newGraph(rows, map[string][]string{"low": {"high"}}); err == nil {
		t.Error("floor 0 may import floor 1")
	}
	if _, err := newGraph(rows, map[string][]string{"high": {"new"}}); err == nil {
		t.Error("a package without a row in the table is drawn")
	}
	if _, err := newGraph(nil, nil); err == nil {
		t.Error("a page without a table is drawn")
	}
}

func TestShortenKeepsWhatFits(t *testing.T) {
	t.Parallel()
	for owns, want := range map[string]string{
		"the shape of API keys: make, parse":         "the shape of API keys",
		"the printed page (PDF) of a document. Pure": "the printed page (PDF) of a document",
		"the domain": "the domain",
		"one, two, " + strings.Repeat("three ", 30) + "x": "one, two",
		strings.Repeat("many ", 60):                       "many many many many many many many many many …",
	} {
		if got := strings.Join(shorten(owns, 12, 130, 3), " "); got != want {
			t.Errorf("shorten(%q) = %q, want %q", owns, got, want)
		}
	}
}

// A tree that is larger than ours is drawn without boxes on top of each other,
// and without lines through boxes.
func TestLargeTreeKeepsItsDistances(t *testing.T) {
	t.Parallel()
	var rows []row
	imports := map[string][]string{}
	for i := range 36 {
		name := fmt.Sprintf("p%02d", i)
		rows = append(rows, row{name: name, floor: i / 6, owns: "one thing, and another"})
		for _, back := range []int{1, 5, 7, 16} {
			if i-back >= 0 {
				imports[name] = append(imports[name], fmt.Sprintf("p%02d", i-back))
			}
		}
		if i%6 > 2 {
			imports[name] = nil
		}
	}
	packages, err := newGraph(rows, imports)
	if err != nil {
		t.Fatal(err)
	}
	l := newLayout(packages, search{starts: 20, finalists: 1})
	boxes := 0
	for _, row := range l.rows {
		for i, n := range row {
			if n.pkg != nil {
				boxes++
			}
			if n.x-n.half() < margin+labelWidth || n.x+n.half() > l.width-margin {
				t.Errorf("%s in row %d leaves the page: x = %d", n.target, n.row, n.x)
			}
			if i > 0 && row[i-1].x+row[i-1].half()+trunkGap > n.x-n.half() {
				t.Errorf("%s and %s are too near in row %d", row[i-1].target, n.target, n.row)
			}
		}
	}
	if boxes != len(rows) {
		t.Errorf("%d boxes, want %d", boxes, len(rows))
	}
}
