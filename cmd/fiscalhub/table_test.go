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

// The first column is whole, and every line fits when the columns can become narrow
// enough.
func TestEveryTableFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		columns := rapid.IntRange(1, 7).Draw(r, "columns")
		b := newTable(make([]string, columns)...)
		for range rapid.IntRange(1, 5).Draw(r, "rows") {
			cells := rapid.SliceOfN(rapid.StringN(0, 40, -1), columns, columns).Draw(r, "cells")
			b.add(cells...)
		}
		first := 0
		for _, row := range b.rows {
			first = max(first, utf8.RuneCountInString(row[0]))
		}
		width := rapid.IntRange(1, 200).Draw(r, "width")
		least := first + (columns-1)*(leastWidth+columnGap)
		for i, line := range strings.Split(strings.TrimSuffix(b.format(width), "\n"), "\n") {
			if i > 0 && !strings.HasPrefix(line+strings.Repeat(" ", first), b.rows[i-1][0]) {
				r.Fatalf("line %q does not begin with %q", line, b.rows[i-1][0])
			}
			if n := utf8.RuneCountInString(line); n > max(width, least) {
				r.Fatalf("line %d has %d characters, and the width is %d", i, n, width)
			}
		}
	})
}
