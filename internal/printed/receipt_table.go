package printed

import "slices"

// A bands is the table of a receipt. Each line of the document takes the
// description and below it one or more bands of columns, because a roll is too
// narrow for all columns side by side. The titles of the columns are in the same
// bands.
type bands struct {
	lines    []lineText
	headings [cells]heading
	bands    [][]column
	text     style
	w        float64
}

const bandGap = 2.0 // between two columns of a receipt

func bandTitle() style { return receiptCaption().strong() }

// newBands distributes the columns: all in one band when they fit, else the count
// and the price in one band and the results in another, else as many bands as the
// amounts need. The longest title takes two lines unless there is room for one.
func newBands(p Page, w float64) bands {
	t := bands{lines: p.lines(), headings: p.headings(), text: receiptBody().sized(8), w: w}
	columns := slices.DeleteFunc(columnsOf(t.lines), func(c column) bool { return c.cell == cellDescription })
	whole := t.headings[cellUnit].lines
	t.headings[cellUnit].lines = narrowUnit()
	for ; ; t.text = t.text.sized(t.text.size - 0.5) {
		t.measure(columns)
		if fit(columns, w) || t.text.size <= 7.5 {
			t.bands = inBands(columns, w)
			break
		}
	}
	t.headings[cellUnit].lines = whole
	t.measure(columns)
	if wide := inBands(columns, w); len(wide) == len(t.bands) {
		t.bands = wide
	} else {
		t.headings[cellUnit].lines = narrowUnit()
		t.measure(columns)
	}
	for _, band := range t.bands {
		arrange(band, w)
	}
	return t
}

// measure gives every column the width of its widest text.
func (t *bands) measure(columns []column) {
	for i := range columns {
		col := &columns[i]
		col.w = receiptCaption().width(t.headings[col.cell].caption)
		for _, line := range t.headings[col.cell].lines {
			col.w = max(col.w, bandTitle().width(line))
		}
		widest := 0.0
		for j := range t.lines {
			widest = max(widest, t.styleOf(col.cell).width(t.lines[j].text[col.cell]))
		}
		if col.cell == cellUnit {
			widest = min(widest, maxUnitW)
		}
		col.w = min(max(col.w, widest), t.w)
	}
}

// fit reports whether columns fit side by side.
func fit(columns []column, w float64) bool {
	sum := -bandGap
	for _, c := range columns {
		sum += c.w + bandGap
	}
	return sum <= w
}

// inBands distributes columns over as few bands as possible.
func inBands(columns []column, w float64) [][]column {
	if fit(columns, w) {
		return [][]column{columns}
	}
	at := slices.IndexFunc(columns, func(c column) bool { return c.cell > cellPrice })
	if fit(columns[:at], w) && fit(columns[at:], w) {
		return [][]column{columns[:at], columns[at:]}
	}
	var list [][]column
	start := 0
	for i := range columns {
		if i > start && !fit(columns[start:i+1], w) {
			list = append(list, columns[start:i])
			start = i
		}
	}
	return append(list, columns[start:])
}

// arrange places the columns of a band: the first at the left edge, the last at
// the right edge, and the others with equal space between them.
func arrange(band []column, w float64) {
	spare := w
	for _, c := range band {
		spare -= c.w
	}
	if len(band) == 1 {
		band[0].w = w
		return
	}
	gap := spare / float64(len(band)-1)
	x := 0.0
	for i := range band {
		band[i].x = x
		x += band[i].w + gap
	}
}

// bandAlign returns the alignment of a column on a receipt. The count starts the
// line, so it is on the left.
func bandAlign(c cell) align {
	if c == cellQuantity {
		return left
	}
	return c.align()
}

// styleOf returns the style of a column: the value of a line is bold.
func (t *bands) styleOf(c cell) style {
	if c == cellValue {
		return t.text.strong()
	}
	return t.text
}

// head returns the titles of the columns between two rules.
func (t *bands) head() block {
	titles := func(columns []column) block {
		var b block
		high := 0
		for _, c := range columns {
			high = max(high, len(t.headings[c.cell].lines))
		}
		for _, c := range columns {
			lines := t.headings[c.cell].lines
			title := block{h: float64(high-len(lines)) * bandTitle().lineHeight()}
			title.stack(stanza(lines, bandTitle(), c.w, bandAlign(c.cell)), 0)
			if text := t.headings[c.cell].caption; text != "" {
				title.stack(stanza([]string{text}, receiptCaption(), c.w, bandAlign(c.cell)), -captionRise)
			}
			b.add(title, c.x, 0)
		}
		return b
	}
	var b block
	b.fill(0, t.w, 0.25, black())
	b.stack(titles([]column{{cell: cellDescription, w: t.w}}), 0.8)
	for _, band := range t.bands {
		b.stack(titles(band), 0)
	}
	b.fill(b.h+0.8, t.w, 0.25, black())
	return b
}

// rows returns the layout of every line.
func (t *bands) rows() []row {
	rows := make([]row, len(t.lines))
	for i := range t.lines {
		rows[i] = row{t.line(&t.lines[i]), i}
	}
	return rows
}

func (t *bands) line(l *lineText) block {
	b := block{h: 1.2}
	indent := 0.0
	if l.exempt {
		b.line("E", receiptBody().strong(), 0, b.h)
		indent = markW
	}
	b.add(paragraph(l.text[cellDescription], receiptBody(), t.w-indent, left), indent, 1.2)
	for _, band := range t.bands {
		y := b.h
		for _, c := range band {
			b.add(paragraph(l.text[c.cell], t.styleOf(c.cell), c.w, bandAlign(c.cell)), c.x, y)
		}
	}
	return b
}
