package printed

import "slices"

// A roll is the paper of a receipt, in millimetres.
type roll struct{ w, margin float64 }

// roll80 returns the common roll: printers for it print 72 mm.
func roll80() roll { return roll{80, 4} }

// roll58 returns the roll of small and mobile printers, which print 48 mm.
func roll58() roll { return roll{58, 5} }

const (
	receiptEnd = 5.0 // the margin above and below

	// receiptMaxH is the longest page: PDF readers accept 14,400 points, which
	// are 5,080 mm.
	receiptMaxH = 5000.0

	// receiptQR is larger than on a letter page, because thermal printers have
	// coarse dots.
	receiptQR = 34.0

	receiptLogo = 40.0 // the largest width of a logo
)

// A receipt lays a document out on a roll. Everything is black, because thermal
// paper has no grey and the receipt must be legible for ten years.
type receipt struct {
	page Page
	logo *logo
	qr   qrCode
	roll roll
	w    float64 // that the printer prints
}

func newReceipt(p Page, l *logo, code qrCode, paper roll) *receipt {
	return &receipt{page: p, logo: l, qr: code, roll: paper, w: paper.w - 2*paper.margin}
}

func receiptBody() style    { return style{size: 8.5, color: black()} }
func receiptSmall() style   { return style{size: 7.5, color: black()} }
func receiptCaption() style { return style{size: minSize, color: black()} }

// fields returns the grid of the labels and values of a receipt.
func (r *receipt) fields() grid {
	return grid{label: receiptSmall(), caption: receiptCaption(), value: receiptBody(), w: r.w, gap: 0.4}
}

func (r *receipt) sheets() []sheet {
	table := newBands(r.page, r.w)
	header, head := r.header(), table.head()
	rows := table.rows()
	foot := r.foot(1, 2) // has the same height on every page
	totals := r.amounts(r.page.totals())
	remarks := remarksIn(r.page.remarks(), r.w, receiptSmall().strong(), receiptCaption(), receiptSmall())
	if len(remarks) > 0 {
		totals.stack(r.rule(), 1.5)
		totals.h += 1.5
	}
	for _, line := range remarks {
		totals.stack(line.block, 0)
	}
	high := receiptMaxH - header.h - head.h - foot.h - 60 // more than the subtotals and the gaps need
	page := room{rows: high, last: high - totals.h}
	pages := paginate(rows, page, page)
	list := make([]sheet, len(pages))
	for i, rows := range pages {
		var b block
		b.add(header, 0, receiptEnd)
		b.stack(head, 2)
		for _, row := range rows {
			b.stack(row.block, 0)
		}
		b.stack(r.rule(), 1)
		if i < len(pages)-1 {
			b.stack(r.amounts(r.page.pageTotals(lineNumbers(rows))), 1.5)
		} else {
			b.stack(totals, 1.5)
		}
		b.stack(r.foot(i+1, len(pages)), 3)
		s := &list[i]
		s.add(b, r.roll.margin, 0)
		s.w, s.h = r.roll.w, s.block.h+receiptEnd
	}
	return list
}

// rule returns a line across the roll.
func (r *receipt) rule() block {
	var b block
	b.fill(0, r.w, 0.25, black())
	return b
}

// centred returns a pair in the middle of the roll. A value that does not fit next
// to its label is below it.
func (r *receipt) centred(p pair, value style) block {
	var b block
	name, small := receiptSmall(), receiptCaption()
	w := name.width(p.label) + value.space() + value.width(p.value)
	if w <= r.w {
		b.line(p.label, name, (r.w-w)/2, value.baseline()-name.baseline())
		b.line(p.value, value, (r.w+w)/2-value.width(p.value), 0)
	} else {
		b.stack(paragraph(p.label, name, r.w, centre), 0)
		b.stack(paragraph(p.value, value, r.w, centre), 0)
	}
	if p.caption != "" {
		b.stack(paragraph(p.caption, small, r.w, centre), -captionRise)
	}
	return b
}

func (r *receipt) header() block {
	var b block
	if r.logo != nil {
		scale := min(1, receiptLogo/r.logo.w)
		w, h := r.logo.w*scale, r.logo.h*scale
		b.items = append(b.items, item{kind: drawLogo, x: (r.w - w) / 2, w: w, h: h})
		b.h = h + 2
	}
	names := r.page.names()
	b.stack(paragraph(names[0], style{size: 11, bold: true}, r.w, centre), 0)
	for _, name := range names[1:] {
		b.stack(paragraph(name, receiptBody(), r.w, centre), 0.3)
	}
	g := r.fields()
	b.stack(g.list(slices.Concat(r.page.issuer(), r.page.contact(), r.page.issued())), 1.5)
	b.stack(r.rule(), 1.5)
	b.stack(paragraph(r.page.typeName(), style{size: 10.5, bold: true}, r.w, centre), 1.5)
	if english := r.page.typeCaption(); english != "" {
		b.stack(paragraph(english, receiptCaption(), r.w, centre), 0)
	}
	for _, p := range r.page.title() {
		value := receiptBody()
		if p.strong {
			value = value.strong().sized(11)
		}
		b.stack(r.centred(p, value), 0.4)
	}
	for _, part := range [][]pair{append(r.page.buyer(), r.page.buyerDetails()...), r.page.terms()} {
		if len(part) > 0 {
			b.stack(r.rule(), 1.5)
			b.stack(g.list(part), 1.5)
		}
	}
	return b
}

func (r *receipt) amounts(rows []amount) block {
	var b block
	for i, a := range rows {
		name := receiptBody()
		indent, gap := 0.0, 0.6
		switch a.weight {
		case grand:
			name, gap = name.strong().sized(12), 1.2
		case detail:
			name, indent, gap = receiptSmall(), 3, 0.2
		case note:
			name = receiptSmall()
		case plain:
			if i > 0 && rows[i-1].weight == note {
				name = name.strong()
			}
		}
		b.stack(r.amount(a, name, indent), gap)
	}
	return b
}

// amount returns one amount. Its label wraps; the amount stays on one line, and
// moves below the label when there is no room next to it.
func (r *receipt) amount(a amount, name style, indent float64) block {
	const least = 20 // the width that a label needs next to the amount
	var b block
	value := name.fit(a.value, r.w-indent-least-2)
	if value.width(a.value) > r.w-indent-least-2 {
		value = name.fit(a.value, r.w-indent)
		b.stack(paragraph(a.label, name, r.w-indent, left), 0)
		if a.caption != "" {
			b.stack(paragraph(a.caption, receiptCaption(), r.w-indent, left), 0)
		}
		b.stack(paragraph(a.value, value, r.w-indent, right), 0)
		return shifted(b, indent)
	}
	room := r.w - indent - 2 - value.width(a.value)
	b.add(paragraph(a.label, name, room, left), indent, 0)
	if a.caption != "" {
		b.add(paragraph(a.caption, receiptCaption(), room, left), indent, b.h-captionRise)
	}
	b.line(a.value, value, r.w-value.width(a.value), name.baseline()-value.baseline())
	return b
}

// shifted returns a block moved to the right.
func shifted(b block, x float64) block {
	var moved block
	moved.add(b, x, 0)
	return moved
}

// foot returns the QR code with the security code and the time of signature below
// it.
func (r *receipt) foot(page, of int) block {
	var b block
	b.items = append(b.items, item{kind: drawQR, x: (r.w - receiptQR) / 2, y: qrBorder, w: receiptQR, h: receiptQR, qr: r.qr})
	b.h = receiptQR + 2*qrBorder
	for _, p := range r.page.stamp() {
		value := receiptBody()
		value.bold = p.strong
		b.stack(r.centred(p, value), 0.4)
	}
	if r.page.Contingency {
		b.stack(paragraph(contingencyLegend, receiptSmall(), r.w, centre), 2)
		if r.page.english() {
			b.stack(paragraph(contingencyCaption, receiptCaption(), r.w, centre), 0.4)
		}
	}
	if of > 1 {
		text, english := r.page.pageNumber(page, of)
		b.stack(paragraph(text, receiptSmall(), r.w, right), 2)
		if english != "" {
			b.stack(paragraph(english, receiptCaption(), r.w, right), 0)
		}
	}
	return b
}
