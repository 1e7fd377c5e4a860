package printed

// A kind is what an item draws.
type kind int

const (
	drawText kind = iota
	drawFill
	drawFrame
	drawLogo
	drawQR
)

// An item is one drawing operation on a sheet. Its position is in millimetres
// from the upper left corner; the position of a text is the start of its
// baseline.
type item struct {
	kind       kind
	x, y, w, h float64
	text       string
	style      style // of a text, and the colour of the others
	qr         qrCode
}

// A block is a part of a page that has a layout but no position yet.
type block struct {
	items []item
	h     float64
}

// add adds a block at a position.
func (b *block) add(part block, x, y float64) {
	for _, i := range part.items {
		i.x += x
		i.y += y
		b.items = append(b.items, i)
	}
	b.h = max(b.h, y+part.h)
}

// stack adds a block below the existing content.
func (b *block) stack(part block, gap float64) { b.add(part, 0, b.h+gap) }

// fill adds a rectangle of one colour at the left edge.
func (b *block) fill(y, w, h float64, c color) {
	b.items = append(b.items, item{kind: drawFill, y: y, w: w, h: h, style: style{color: c}})
	b.h = max(b.h, y+h)
}

// line adds a text on a line whose top is y. The line takes its height even when
// the text is empty.
func (b *block) line(text string, s style, x, y float64) {
	if text != "" {
		b.items = append(b.items, item{kind: drawText, x: x, y: y + s.baseline(), w: s.width(text), h: s.size * millimetre, text: text, style: s})
	}
	b.h = max(b.h, y+s.lineHeight())
}

// An align is the alignment of the lines of a text.
type align int

const (
	left align = iota
	centre
	right
)

// paragraph returns a text wrapped to a width.
func paragraph(text string, s style, w float64, a align) block {
	return stanza(wrap(text, s, w), s, w, a)
}

// stanza returns lines aligned within a width.
func stanza(lines []string, s style, w float64, a align) block {
	var b block
	for _, line := range lines {
		x := 0.0
		switch a {
		case left:
		case centre:
			x = (w - s.width(line)) / 2
		case right:
			x = w - s.width(line)
		}
		b.line(line, s, x, b.h)
	}
	return b
}

// A row is a part of the body of a page that is not split between pages.
type row struct {
	block
	line int // the index of the document's line, or -1
}

// A room is the height that a page has for rows: rows in general, last when it is
// the last page, which also has the totals.
type room struct{ rows, last float64 }

// paginate fills pages with rows. The first page has a header of its own, and
// therefore a room of its own; it may have no row at all. The last page has at
// least one row, unless no row fits together with the totals.
func paginate(rows []row, first, next room) [][]row {
	var pages [][]row
	for page := first; len(rows) > 0; page = next {
		n, sum := 0, 0.0
		for _, r := range rows {
			if sum += r.h; sum <= page.rows {
				n++
			}
		}
		if sum <= page.last {
			return append(pages, rows)
		}
		if len(pages) > 0 || rows[0].h > next.rows {
			n = max(n, 1)
		}
		if n == len(rows) && n > 1 {
			n-- // the totals move to the next page, with one row
		}
		pages = append(pages, rows[:n])
		rows = rows[n:]
	}
	return append(pages, nil)
}

// lineNumbers returns the indexes of the document's lines that rows show.
func lineNumbers(rows []row) []int {
	var list []int
	for _, r := range rows {
		if r.line >= 0 {
			list = append(list, r.line)
		}
	}
	return list
}

// A sheet is a page with its content.
type sheet struct {
	w, h float64
	block
}
