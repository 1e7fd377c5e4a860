package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTableFitsItsWidth(t *testing.T) {
	t.Parallel()
	b := newTable("ID", "NAME", "LAST ERROR")
	b.add("0192", "Ñandú, SRL", "the authority has not answered for 10 minutes, and the service tries again")
	b.add("0193", "b", "line\nbreak")
	const want = `ID    NAME        LAST ERROR
0192  Ñandú, SRL  the authority has no…
0193  b           line\nbreak
`
	if got := b.format(39); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := b.format(0); !strings.Contains(got, "and the service tries again\n") {
		t.Errorf("without a width the table has\n%s", got)
	}
}

// On a narrow terminal each object is a block: the heading and the cell of each column.
func TestNarrowTableHasBlocks(t *testing.T) {
	t.Parallel()
	b := newTable("RANGE", "ENVIRONMENT", "TAXPAYER", "TYPE", "EXPIRES")
	b.add("01a1e440-9fde-77a6-9eb3-d947137986c2", "certification", "01a1e440-7b65-7259-b19f-e48bbe518fb8", "31", "2027-12-31")
	b.add("01a1e440-a2fe-7c2e-8edc-e834f39b42f8", "certification", "01a1e440-7b65-7259-b19f-e48bbe518fb8", "32", "")
	const want = `RANGE        01a1e440-9fde-77a6-9eb3-d947137986c2
ENVIRONMENT  certification
TAXPAYER     01a1e440-7b65-7259-b19f-e48bbe518fb8
TYPE         31
EXPIRES      2027-12-31

RANGE        01a1e440-a2fe-7c2e-8edc-e834f39b42f8
ENVIRONMENT  certification
TAXPAYER     01a1e440-7b65-7259-b19f-e48bbe518fb8
TYPE         32
`
	if got := b.format(60); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := b.format(40); !strings.HasPrefix(got, "RANGE\n01a1e440-9fde-77a6-9eb3-d947137986c2\nENVIRONMENT  certification\nTAXPAYER\n01a1e440-7b65-7259-b19f-e48bbe518fb8\n") {
		t.Errorf("got\n%s", got)
	}
}

// Ids, times and codes are whole in a table and in blocks, and a long text in blocks has all
// of its words.
func TestTableCutsOnlyTexts(t *testing.T) {
	t.Parallel()
	b := newTable("DOCUMENT", "NEXT", "CAUSE", "ENVIRONMENT", "TAXPAYER")
	b.add("01a1e440-9fde-77a6-9eb3-d947137986c2", "2026-11-17T11:05:07Z", "the tax authority has not received the document: the third answer proves it",
		"certification", "01a1e440-7b65-7259-b19f-e48bbe518fb8")
	const blocks = `DOCUMENT     01a1e440-9fde-77a6-9eb3-d947137986c2
NEXT         2026-11-17T11:05:07Z
CAUSE        the tax authority has not received the
             document: the third answer proves it
ENVIRONMENT  certification
TAXPAYER     01a1e440-7b65-7259-b19f-e48bbe518fb8
`
	if got := b.format(60); got != blocks {
		t.Errorf("got\n%s", got)
	}
	if got := b.format(120); !strings.Contains(got, "CAUSE        the tax authority has not received the document: the third answer proves it\n") {
		t.Errorf("at 120 characters: got\n%s", got)
	}
	if got := b.format(160); strings.Count(got, "\n") != 2 || !strings.Contains(got, "  the tax authority has not received the documen…  certification  01a1e440-7b65-7259-b19f-e48bbe518fb8\n") {
		t.Errorf("at 160 characters: got\n%s", got)
	}
}

// Links are for copying: a table that has them shortens nothing.
func TestTableOfLinksHasWholeCells(t *testing.T) {
	t.Parallel()
	b := newTable("ID", "STATUS", "XML", "PDF")
	b.whole = true
	b.add("demo-1", "accepted_conditional", "http://127.0.0.1:8080/files/demo-1.xml", "http://127.0.0.1:8080/files/demo-1.pdf")
	const want = `ID      demo-1
STATUS  accepted_conditional
XML     http://127.0.0.1:8080/files/demo-1.xml
PDF     http://127.0.0.1:8080/files/demo-1.pdf
`
	if got := b.format(80); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := b.format(200); strings.Count(got, "\n") != 2 {
		t.Errorf("got\n%s", got)
	}
	if got := b.format(30); !strings.HasSuffix(got, "\nPDF\nhttp://127.0.0.1:8080/files/demo-1.pdf\n") {
		t.Errorf("on a narrow terminal: got\n%s", got)
	}
}

// The first cell is whole, and no line is wider than the terminal unless that cell is.
func TestEveryTableFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		columns := rapid.IntRange(1, 9).Draw(r, "columns")
		b := newTable(make([]string, columns)...)
		for i := range b.headings {
			b.headings[i] = strings.Repeat("H", rapid.IntRange(1, 12).Draw(r, "heading"))
		}
		for range rapid.IntRange(1, 5).Draw(r, "rows") {
			cells := rapid.SliceOfN(rapid.StringN(0, 40, -1), columns, columns).Draw(r, "cells")
			b.add(cells...)
		}
		first := 0
		for _, row := range b.rows {
			first = max(first, utf8.RuneCountInString(row[0]))
		}
		width := rapid.IntRange(20, 200).Draw(r, "width")
		got := b.format(width)
		for _, row := range b.rows {
			if !strings.Contains(got, strings.TrimRight(row[0], " ")) {
				r.Fatalf("no %q in\n%s", row[0], got)
			}
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(width, first) {
				r.Fatalf("a line has %d characters, and the width is %d:\n%s", n, width, got)
			}
		}
	})
}
