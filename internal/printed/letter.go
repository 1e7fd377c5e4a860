package printed

// The letter page, in millimetres. The quiet zone of the QR code begins at the
// left margin, so that the code itself is 2 cm from the edge, as the authority
// requires.
const (
	letterW, letterH = 215.9, 279.4
	letterMargin     = 17.0
	letterTop        = 11.0
	letterBottom     = 9.5
	letterInner      = letterW - 2*letterMargin

	qrSize   = 28.0
	qrBorder = 3.0 // the quiet zone; scanners need at least four modules

	titleW  = 77.0
	totalsW = 80.0
	gutter  = 6.0

	sectionGap = 2.5 // between two parts of a page
	totalsGap  = 3.0 // between the table and the totals
)

// A letter lays a document out on letter pages.
type letter struct {
	page Page
	logo *logo
	qr   qrCode

	headers [2]block // of the first page and of the others
	stamp   block    // the texts below the QR code
	legend  block
	totals  block
}

func body() style    { return style{size: 8, color: ink()} }
func label() style   { return style{size: 7.5, color: muted()} }
func caption() style { return style{size: minSize, color: muted()} }

// fields returns the grid of the labels and values of a letter page.
func (l *letter) fields(w float64) grid {
	g := grid{label: label(), caption: caption(), value: body(), w: w, gap: 0.3}
	if l.page.english() {
		g.gap = 0.6 // keeps a caption closer to its label than to the next one
	}
	return g
}

// A pagination is the content of the table, distributed over pages.
type pagination struct {
	table   table
	pages   [][]row
	remarks []row // next to the totals
}

// A smaller font is tried for the table when it may save a page of a document of up
// to fewPages, or when a document has more than manyPages. In between it would save
// little.
const (
	fewPages  = 6
	manyPages = 30
)

// paginateBest distributes the lines over pages. It takes a smaller font for the table
// only when that saves a page.
func (l *letter) paginateBest(lines []lineText) pagination {
	normal := l.paginate(lines, body())
	n := len(normal.pages)
	if n == 1 || n > fewPages && n <= manyPages {
		return normal
	}
	small := l.paginate(lines, body().sized(minSize))
	switch {
	case len(small.pages) >= n:
		return normal
	case n > manyPages:
		return small
	}
	if between := l.paginate(lines, body().sized(7.5)); len(between.pages) <= len(small.pages) {
		return between
	}
	return small
}

func (l *letter) sheets() []sheet {
	l.headers = [2]block{l.header(), l.shortHeader()}
	l.stamp = l.fields(letterInner - totalsW - gutter).list(l.page.stamp())
	if l.page.Contingency {
		l.legend = l.contingency()
	}
	l.totals = amounts(l.page.totals(), totalsW)
	best := l.paginateBest(l.page.lines())
	list := make([]sheet, len(best.pages))
	for i := range list {
		list[i] = l.sheet(&best, i)
	}
	return list
}

// paginate distributes the lines of the document over pages, with a table in a
// style.
func (l *letter) paginate(lines []lineText, text style) pagination {
	p := pagination{table: newTable(l.page, lines, text, letterInner)}
	var rooms [2]room
	for i, h := range l.headers {
		bodyTop := l.top(h) + p.table.head.h
		rooms[i].rows = l.stampTop() - totalsGap - bodyTop
		// The totals may be next to the QR code; the table must end above it.
		rooms[i].last = min(rooms[i].rows, l.bottom()-l.numberHeight()-l.totals.h-totalsGap-bodyTop)
	}
	rows := split(p.table.rows(), rooms[1].rows)
	p.remarks = remarks(l.page.remarks(), letterInner-totalsW-gutter)
	p.pages = paginate(rows, rooms[0], rooms[1])
	last := len(p.pages) - 1
	tail := l.top(l.headers[min(last, 1)]) + p.table.head.h + height(p.pages[last]) + totalsGap
	if len(p.remarks) > 0 && tail+height(p.remarks) > l.stampTop()-totalsGap {
		// The remarks are too long for the space next to the totals, so they
		// follow the table.
		rows = append(rows, wideRemarks(l.page.remarks())...)
		p.remarks = nil
		p.pages = paginate(rows, rooms[0], rooms[1])
	}
	return p
}

// sheet returns page i.
func (l *letter) sheet(p *pagination, i int) sheet {
	s := sheet{w: letterW, h: letterH}
	rows, header := p.pages[i], l.headers[min(i, 1)]
	s.add(header, letterMargin, letterTop)
	end := l.top(header)
	if len(lineNumbers(rows)) > 0 {
		s.add(p.table.head, letterMargin, end)
		end += p.table.head.h
	}
	for _, r := range rows {
		s.add(r.block, letterMargin, end)
		end += r.h
	}
	l.footer(&s, i+1, len(p.pages))
	x := letterW - letterMargin - totalsW
	if i < len(p.pages)-1 {
		s.add(amounts(l.page.pageTotals(lineNumbers(rows)), totalsW), x, l.stampTop())
		return s
	}
	s.add(l.totals, x, end+totalsGap)
	for _, r := range p.remarks {
		s.add(r.block, letterMargin, end+totalsGap)
		end += r.h
	}
	return s
}

// top returns the top of the table below a header.
func (l *letter) top(header block) float64 { return letterTop + header.h + sectionGap }

// bottom returns the lowest position for content, above the legend.
func (l *letter) bottom() float64 { return letterH - letterBottom - l.legend.h }

// stampTop returns the top of the QR code's frame.
func (l *letter) stampTop() float64 {
	return l.bottom() - l.stamp.h - 1 - qrSize - 2*qrBorder
}

// numberHeight returns the height of the page number with the space above it.
func (l *letter) numberHeight() float64 {
	h := label().lineHeight() + 1.5
	if l.page.english() {
		h += caption().lineHeight()
	}
	return h
}

// contingency returns the legend at the bottom of the page.
func (l *letter) contingency() block {
	b := block{h: sectionGap}
	b.stack(paragraph(contingencyLegend, label().colored(ink()), letterInner, centre), 0)
	if l.page.english() {
		b.stack(paragraph(contingencyCaption, caption(), letterInner, centre), 0)
	}
	return b
}

// footer adds the QR code with the texts below it, the legend, and the page number
// when there are several pages.
func (l *letter) footer(s *sheet, page, of int) {
	y := l.stampTop()
	s.items = append(s.items,
		item{kind: drawFrame, x: letterMargin, y: y, w: qrSize + 2*qrBorder, h: qrSize + 2*qrBorder, style: style{color: hairline()}},
		item{kind: drawQR, x: letterMargin + qrBorder, y: y + qrBorder, w: qrSize, h: qrSize, qr: l.qr})
	s.add(l.stamp, letterMargin, l.bottom()-l.stamp.h)
	if of > 1 {
		text, english := l.page.pageNumber(page, of)
		number := paragraph(text, label(), letterInner, right)
		if english != "" {
			number.stack(paragraph(english, caption(), letterInner, right), 0)
		}
		s.add(number, letterMargin, l.bottom()-number.h)
	}
	s.add(l.legend, letterMargin, l.bottom())
}
