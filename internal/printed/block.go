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

// An item is one thing on a sheet. Its place is in millimetres from the upper
// left; that of a text is where its base line starts.
type item struct {
	kind       kind
	x, y, w, h float64
	text       string
	style      style // of a text, and the colour of the others
	qr         qrCode
}

// A block is a part of a page, laid out but not placed yet.
type block struct {
	items []item
	h     float64
}

// add puts a block into another one.
func (b *block) add(part block, x, y float64) {
	for _, i := range part.items {
		i.x += x
		i.y += y
		b.items = append(b.items, i)
	}
	b.h = max(b.h, y+part.h)
}

// stack puts a block under all that is there.
func (b *block) stack(part block, gap float64) { b.add(part, 0, b.h+gap) }

// fill puts a rectangle of one colour at the left edge.
func (b *block) fill(y, w, h float64, c color) {
	b.items = append(b.items, item{kind: drawFill, y: y, w: w, h: h, style: style{color: c}})
	b.h = max(b.h, y+h)
}

// line puts a text on the line of which y is the top. The line is part of the
// block even when the text is empty.
func (b *block) line(text string, s style, x, y float64) {
	if text != "" {
		b.items = append(b.items, item{kind: drawText, x: x, y: y + s.baseline(), w: s.width(text), h: s.size * millimetre, text: text, style: s})
	}
	b.h = max(b.h, y+s.lineHeight())
}

// An align is where the lines of a text begin or end.
type align int

const (
	left align = iota
	centre
	right
)

// paragraph returns a text broken into lines within a width.
func paragraph(text string, s style, w float64, a align) block {
	return stanza(wrap(text, s, w), s, w, a)
}

// stanza returns lines within a width.
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

// A grid is how labels and what they name stand side by side.
type grid struct {
	label, caption, value style
	w                     float64
	gap                   float64 // between two pairs
	// inline puts each value right after its label, not in a column of its own.
	inline bool
}

func (g grid) block(list []pair) block {
	var b block
	column := 0.0
	for _, p := range list {
		column = max(column, g.label.width(p.label), g.caption.width(p.caption))
	}
	column = min(column+2, g.w/2)
	for i, p := range list {
		value := g.value
		value.bold = p.strong
		at := column
		if g.inline {
			at = g.label.width(p.label) + value.space()
		}
		var row block
		row.line(p.label, g.label, 0, 0)
		if p.caption != "" {
			if g.inline {
				row.line(p.caption, g.caption, at, 0)
				at += g.caption.width(p.caption) + 2*value.space()
			} else {
				row.line(p.caption, g.caption, 0, g.label.lineHeight()-0.4)
			}
		}
		// One base line for both, whatever their sizes.
		row.add(paragraph(p.value, value, g.w-at, left), at, g.label.baseline()-value.baseline())
		gap := g.gap
		if i == 0 {
			gap = 0
		}
		b.stack(row, gap)
	}
	return b
}

// A row is a part of the body of a page that stands on one page.
type row struct {
	block
	line int // the number of the document's line, or -1
}

// paginate fills pages with rows: every page but the last has a room, and the
// last one another. A page that is last has at least a row, unless no row fits
// beside the totals.
func paginate(rows []row, room, lastRoom float64) [][]row {
	var pages [][]row
	for len(rows) > 0 {
		n, sum := 0, 0.0
		for _, r := range rows {
			if sum += r.h; sum <= room {
				n++
			}
		}
		if sum <= lastRoom {
			return append(pages, rows)
		}
		n = max(n, 1)
		if n == len(rows) && n > 1 {
			n-- // the totals go to the next page, and not alone
		}
		pages = append(pages, rows[:n])
		rows = rows[n:]
	}
	return append(pages, nil)
}

// lineNumbers are the lines of the document that rows show.
func lineNumbers(rows []row) []int {
	var list []int
	for _, r := range rows {
		if r.line >= 0 {
			list = append(list, r.line)
		}
	}
	return list
}

// A sheet is a page with all that stands on it.
type sheet struct {
	w, h float64
	block
}
