package printed

import "slices"

// A table is the lines of a document in columns.
type table struct {
	lines   []lineText
	columns []column
	text    style
	mark    float64 // the width reserved for the E of exempt items
	// stacked puts the description above the amounts, when the amounts are so
	// long that the description has no space next to them.
	stacked bool
	w       float64
	head    block
}

// A column is a column of the table.
type column struct {
	cell cell
	x, w float64 // of its text
}

const (
	cellGap    = 2.6  // between two columns
	tableEdge  = 2.0  // the padding left and right
	calmText   = 68.0 // below this description width, the longest title wraps if a description does
	wideText   = 56.0 // below this description width, the font becomes smaller
	narrowText = 32.0 // below this width, the description moves above the amounts
	calmAmount = 16.0 // the width of an amount when there is space
	maxUnitW   = 20.0
	markW      = 3.5 // the width of the E of exempt items
)

// newTable chooses the columns, and the largest font size up to that of text, for
// which every amount fits on one line and descriptions have enough space.
func newTable(p Page, lines []lineText, text style, w float64) table {
	t := table{lines: lines, columns: columnsOf(lines), text: text, w: w}
	if slices.ContainsFunc(lines, func(l lineText) bool { return l.exempt }) {
		t.mark = markW
	}
	headings := p.headings()
	if rest := t.measure(headings, calmAmount); rest < calmText && !t.descriptionsFit(rest) {
		headings[cellUnit].lines = narrowUnit()
	}
	if t.measure(headings, calmAmount) < wideText {
		for t.measure(headings, 0) < wideText && t.text.size > minSize {
			t.text = t.text.sized(t.text.size - 0.5)
		}
	}
	t.settle()
	x := tableEdge
	for i := range t.columns {
		col := &t.columns[i]
		if t.stacked && col.cell == cellDescription {
			col.x = tableEdge
			continue
		}
		col.x = x
		x += col.w + cellGap
	}
	t.head = t.heads(headings)
	return t
}

// descriptionsFit reports whether every description fits on one line of a width.
func (t *table) descriptionsFit(w float64) bool {
	return !slices.ContainsFunc(t.lines, func(l lineText) bool { return !t.text.fits(l.text[cellDescription], w-t.mark) })
}

// narrowUnit returns the longest column title on two lines.
func narrowUnit() []string { return []string{"Unidad de", "Medida"} }

// headStyle is the style of the column titles.
func headStyle() style { return style{size: 7.5, bold: true, color: white()} }

// headCaption is the style of their English captions.
func headCaption() style { return style{size: minSize, color: color{198, 212, 226}} }

// measure gives every column the width of its widest text, and the description
// the rest, which it returns. Amounts are at least as wide as least.
func (t *table) measure(headings [cells]heading, least float64) float64 {
	rest := t.w - 2*tableEdge - cellGap*float64(len(t.columns)-1)
	for i := range t.columns {
		col := &t.columns[i]
		if col.cell == cellDescription {
			continue
		}
		if col.w = 0; col.cell >= cellPrice {
			col.w = least
		}
		col.w = max(col.w, headCaption().width(headings[col.cell].caption))
		for _, line := range headings[col.cell].lines {
			col.w = max(col.w, headStyle().width(line))
		}
		widest := 0.0
		for j := range t.lines {
			widest = max(widest, t.text.width(t.lines[j].text[col.cell]))
		}
		if col.cell == cellUnit {
			widest = min(widest, maxUnitW)
		}
		col.w = max(col.w, widest)
		rest -= col.w
	}
	for i := range t.columns {
		if t.columns[i].cell == cellDescription {
			t.columns[i].w = rest
		}
	}
	return rest
}

// settle moves the description above the amounts when it has too little space.
// When even the amounts alone are too wide, their columns shrink and they wrap;
// numbers within the limits of the format always fit.
func (t *table) settle() {
	figures, room := 0.0, t.w-2*tableEdge-cellGap*float64(len(t.columns)-2)
	var text *column
	for i := range t.columns {
		if col := &t.columns[i]; col.cell == cellDescription {
			text = col
		} else {
			figures += col.w
		}
	}
	if text.w >= narrowText {
		return
	}
	t.stacked = true
	text.w = t.w - 2*tableEdge
	spare := (room - figures) / float64(len(t.columns)-1)
	for i := range t.columns {
		switch col := &t.columns[i]; {
		case col.cell == cellDescription:
		case spare < 0:
			col.w *= room / figures
		default:
			col.w += spare
		}
	}
}

func (c cell) align() align {
	switch c {
	case cellDescription, cellUnit:
		return left
	default:
		return right
	}
}

func (t *table) heads(headings [cells]heading) block {
	const padding = 1.1
	high := 0
	for _, col := range t.columns {
		high = max(high, len(headings[col.cell].lines))
	}
	inner := block{h: padding}
	top := padding
	draw := func(col column, lines int) {
		h := headings[col.cell]
		// Titles of one line are aligned with the last line of longer ones.
		y := top + float64(lines-len(h.lines))*headStyle().lineHeight()
		text := stanza(h.lines, headStyle(), col.w, col.cell.align())
		if h.caption != "" {
			text.stack(stanza([]string{h.caption}, headCaption(), col.w, col.cell.align()), -0.4)
		}
		x := col.x
		if col.cell == cellDescription {
			x += t.mark
		}
		inner.add(text, x, y)
	}
	if t.stacked {
		for _, col := range t.columns {
			if col.cell == cellDescription {
				draw(col, 1)
			}
		}
		top = inner.h + 0.6
	}
	for _, col := range t.columns {
		if !t.stacked || col.cell != cellDescription {
			draw(col, high)
		}
	}
	var b block
	b.fill(0, t.w, inner.h+padding, accent())
	b.add(inner, 0, 0)
	return b
}

// rows returns the layout of every line.
func (t *table) rows() []row {
	const padding = 0.5
	rows := make([]row, len(t.lines))
	for i := range t.lines {
		l := &t.lines[i]
		b := &rows[i].block
		rows[i].line = i
		top := padding
		if t.stacked {
			b.add(t.description(l), 0, padding)
			top = b.h
		}
		for _, col := range t.columns {
			switch {
			case col.cell != cellDescription:
				b.add(paragraph(l.text[col.cell], t.text, col.w, col.cell.align()), col.x, top)
			case !t.stacked:
				b.add(t.description(l), 0, padding)
			}
		}
		b.fill(b.h+padding, t.w, 0.12, hairline())
	}
	return rows
}

func (t *table) description(l *lineText) block {
	var b block
	for _, col := range t.columns {
		if col.cell != cellDescription {
			continue
		}
		if l.exempt {
			b.line("E", t.text.strong().colored(accent()), col.x, 0)
		}
		b.add(paragraph(l.text[col.cell], t.text, col.w-t.mark, left), col.x+t.mark, 0)
	}
	return b
}

// split breaks rows that are higher than a page between two lines of text. It
// does not split other rows.
func split(rows []row, room float64) []row {
	var list []row
	for _, r := range rows {
		for r.h > room && room > 10 {
			var upper, lower block
			cut := 0.0
			for _, i := range r.items {
				if i.y < room {
					upper.items = append(upper.items, i)
					cut = max(cut, i.y)
				} else {
					lower.items = append(lower.items, i)
				}
			}
			upper.h = room
			lower.h = r.h - cut
			for i := range lower.items {
				lower.items[i].y -= cut
			}
			list = append(list, row{upper, r.line})
			r = row{lower, -1}
		}
		list = append(list, r)
	}
	return list
}
