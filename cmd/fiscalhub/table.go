package main

import (
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// table is a list for people: a heading for each column, and a row for each object. The
// first column identifies the object and is never shortened.
type table struct {
	headings []string
	rows     [][]string
	whole    bool // no cell is shortened, because people copy what it has
}

func newTable(headings ...string) *table { return &table{headings: headings} }

// add adds a row. Cells may have text of strangers: what could control the terminal or
// break the table is escaped.
func (b *table) add(cells ...string) { b.rows = append(b.rows, mapEach(cells, printable)) }

const (
	columnGap  = 2
	leastWidth = 20 // of a column of texts that is shortened
)

// list prints v as JSON with --json, and the table without. When the table has no row it
// prints "none" on standard error.
func (t *terminal) list(v any, b *table) error {
	if t.cli.JSON {
		return t.answer(v, nil)
	}
	if len(b.rows) == 0 {
		t.progress(lang.Messagef("none", "ninguno"))
		return nil
	}
	local := table{headings: mapEach(b.headings, func(name string) string { return heading(name, t.language) }), rows: b.rows, whole: b.whole}
	_, err := t.out.Write([]byte(local.format(t.width())))
	return err
}

// width returns how many characters a line of standard output may have, or 0 for any
// number: with --wide, and when standard output is no terminal.
func (t *terminal) width() int {
	file, ok := t.out.(*os.File)
	if t.cli.Wide || !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// format returns the table in lines of at most width characters. It shortens the widest
// texts, but no ids, times and codes, which say nothing when they are cut; 0 shortens none.
// When that is not enough, each object becomes a block with a line for each column.
func (b *table) format(width int) string {
	all := append([][]string{b.headings}, b.rows...)
	widths, least := make([]int, len(b.headings)), make([]int, len(b.headings))
	for n, row := range all {
		for i, cell := range row {
			width := utf8.RuneCountInString(cell)
			widths[i] = max(widths[i], width)
			if n > 0 && i > 0 && !b.whole && strings.Contains(cell, " ") {
				width = min(width, leastWidth)
			}
			least[i] = max(least[i], width)
		}
	}
	if width > 0 && !fitColumns(widths, width, least) {
		return b.blocks(width)
	}
	var out strings.Builder
	for _, row := range all {
		line := ""
		for i, cell := range row {
			text := shortened(cell, widths[i])
			line += text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+columnGap)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// fitColumns takes characters from the widest columns until a line fits. It returns false
// when no column has more than its least width any more.
func fitColumns(widths []int, width int, least []int) bool {
	for {
		sum, widest := -columnGap, -1
		for i, w := range widths {
			sum += w + columnGap
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if sum <= width {
			return true
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
}

// blocks returns a block of lines for each row: the heading of a column and its cell. Empty
// cells have no line. A long text has several lines, and a long word a line of its own.
func (b *table) blocks(width int) string {
	longest := 0
	for _, name := range b.headings {
		longest = max(longest, utf8.RuneCountInString(name))
	}
	var out strings.Builder
	for i, row := range b.rows {
		if i > 0 {
			out.WriteString("\n")
		}
		for j, cell := range row {
			name, left := b.headings[j], max(1, width-longest-columnGap)
			between := strings.Repeat(" ", longest-utf8.RuneCountInString(name)+columnGap)
			length := utf8.RuneCountInString(cell)
			switch {
			case j > 0 && cell == "":
				continue
			case length <= left:
			case j == 0 || b.whole || !strings.Contains(cell, " ") && length <= width:
				between = "\n"
			default:
				cell = strings.Join(wrapped(cell, left), "\n"+strings.Repeat(" ", longest+columnGap))
			}
			out.WriteString(name + between + cell + "\n")
		}
	}
	return out.String()
}

// wrapped returns the lines of a text, each of at most width characters. It cuts only words
// that are longer.
func wrapped(text string, width int) []string {
	var lines []string
	for left := []rune(text); len(left) > 0; {
		end := min(width, len(left))
		if end < len(left) && left[end] != ' ' {
			for i := end - 1; i > 0; i-- {
				if left[i] == ' ' {
					end = i
					break
				}
			}
		}
		lines = append(lines, strings.TrimRight(string(left[:end]), " "))
		for left = left[end:]; len(left) > 0 && left[0] == ' '; {
			left = left[1:]
		}
	}
	return lines
}

// shortened returns at most width characters of a text.
func shortened(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
