package printed

import (
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// The letter page, in millimetres. The quiet zone of the QR code begins at the
// left margin, so that the code itself is 2 cm from the edge, as the authority
// requires.
const (
	letterW, letterH = 215.9, 279.4
	letterMargin     = 17.0
	letterTop        = 14.0
	letterBottom     = 12.0
	letterInner      = letterW - 2*letterMargin

	qrSize   = 28.0
	qrBorder = 3.0 // the quiet zone; scanners need at least four modules

	titleW  = 77.0
	totalsW = 80.0
	gutter  = 8.0
)

// A letter lays a document out on letter pages.
type letter struct {
	page Page
	logo *logo
	qr   qrCode

	table  table
	legend block
}

func body() style    { return style{size: 8.5, color: ink()} }
func label() style   { return style{size: 8, color: muted()} }
func caption() style { return style{size: minSize, color: muted()} }

func (l *letter) sheets() []sheet {
	l.table = newTable(l.page, letterInner)
	if l.page.Contingency {
		l.legend = paragraph(contingencyLegend, label().colored(ink()).sized(7.5), letterInner, centre)
		l.legend.h += 3
	}
	totals := amounts(l.page.totals(), totalsW)
	headers := [2]block{l.header(), l.shortHeader()}
	var rooms [2]room
	for i, h := range headers {
		bodyTop := l.top(h) + l.table.head.h
		rooms[i].rows = l.stampTop() - 4 - bodyTop
		// The totals may be next to the QR code; the table must end above it.
		rooms[i].last = min(rooms[i].rows, l.bottom()-6-totals.h-4-bodyTop)
	}

	rows := split(l.table.rows(), rooms[1].rows)
	remarks := remarks(l.page.remarks(), letterInner-totalsW-gutter)
	pages := paginate(rows, rooms[0], rooms[1])
	last := len(pages) - 1
	if tail := l.top(headers[min(last, 1)]) + l.table.head.h + height(pages[last]) + 4; len(remarks) > 0 && tail+height(remarks) > l.stampTop()-4 {
		// The remarks are too long for the space next to the totals, so they
		// follow the table.
		rows = append(rows, wideRemarks(l.page.remarks())...)
		remarks = nil
		pages = paginate(rows, rooms[0], rooms[1])
	}

	list := make([]sheet, len(pages))
	for i, rows := range pages {
		s := &list[i]
		s.w, s.h = letterW, letterH
		header := headers[min(i, 1)]
		s.add(header, letterMargin, letterTop)
		end := l.top(header)
		if len(lineNumbers(rows)) > 0 {
			s.add(l.table.head, letterMargin, end)
			end += l.table.head.h
		}
		for _, r := range rows {
			s.add(r.block, letterMargin, end)
			end += r.h
		}
		l.footer(s, i+1, len(pages))
		x := letterW - letterMargin - totalsW
		if i < len(pages)-1 {
			s.add(amounts(l.page.pageTotals(lineNumbers(rows)), totalsW), x, l.stampTop())
			continue
		}
		s.add(totals, x, end+4)
		for _, r := range remarks {
			s.add(r.block, letterMargin, end+4)
			end += r.h
		}
	}
	return list
}

// top returns the top of the table below a header.
func (l *letter) top(header block) float64 { return letterTop + header.h + 4 }

// bottom returns the lowest position for content, above the legend.
func (l *letter) bottom() float64 { return letterH - letterBottom - l.legend.h }

// stampTop returns the top of the QR code's frame.
func (l *letter) stampTop() float64 {
	return l.bottom() - 2*body().lineHeight() - 1.5 - qrSize - 2*qrBorder
}

func (l *letter) footer(s *sheet, page, of int) {
	y := l.stampTop()
	s.items = append(s.items,
		item{kind: drawFrame, x: letterMargin, y: y, w: qrSize + 2*qrBorder, h: qrSize + 2*qrBorder, style: style{color: hairline()}},
		item{kind: drawQR, x: letterMargin + qrBorder, y: y + qrBorder, w: qrSize, h: qrSize, qr: l.qr})
	y += qrSize + 2*qrBorder + 1.5
	g := grid{label: label(), value: body(), w: letterInner / 2, inline: true}
	s.add(g.block([]pair{
		{label: "Código de Seguridad:", value: l.page.Code.String(), strong: true},
		{label: "Fecha de Firma Digital:", value: fiscal.FormatDGIITime(l.page.Document.SignedAt)},
	}), letterMargin, y)
	if of > 1 {
		text := fmt.Sprintf("Página No. %d de %d", page, of)
		s.add(paragraph(text, label(), letterInner, right), letterMargin, l.bottom()-label().lineHeight())
	}
	s.add(l.legend, letterMargin, l.bottom()+3)
}

// header returns the top of the first page: the issuer, the title, the buyer and
// the terms.
func (l *letter) header() block {
	return l.compose(l.issuer(letterInner-titleW-gutter), l.panel(l.page.buyer(), l.page.terms()))
}

// shortHeader returns the top of the pages after the first. It has only what the
// authority requires on every page, so that the lines and the totals have room.
func (l *letter) shortHeader() block {
	var issuer block
	const w = letterInner - titleW - gutter
	for i, name := range l.page.names() {
		s := style{size: 8.5, color: ink()}
		if i == 0 {
			s = style{size: 10, bold: true, color: ink()}
		}
		issuer.stack(short(name, s, minSize, w), 0.2)
	}
	g := grid{label: label(), value: body(), w: w, gap: 0.3, inline: true}
	issuer.stack(g.block(l.page.issuerOnEveryPage()), 0.8)
	return l.compose(issuer, l.panel(l.page.buyerOnEveryPage(), nil))
}

func (l *letter) compose(issuer, panel block) block {
	var b block
	b.fill(0, letterInner, 0.9, accent())
	const y = 5
	b.add(issuer, 0, y)
	b.add(l.title(), letterInner-titleW, y)
	if panel.h > 0 {
		b.stack(panel, 4)
	}
	return b
}

func (l *letter) issuer(w float64) block {
	var b block
	if l.logo != nil {
		b.items = append(b.items, item{kind: drawLogo, w: l.logo.w, h: l.logo.h})
		b.h = l.logo.h + 3
	}
	names := l.page.names()
	b.stack(short(names[0], style{size: 13, bold: true, color: ink()}, 9, w), 0)
	for _, name := range names[1:] {
		b.stack(short(name, style{size: 9.5, color: ink()}, 8.5, w), 0.3)
	}
	g := grid{label: label(), caption: caption(), value: body(), w: w, gap: 0.5, inline: true}
	b.stack(g.block(l.page.issuer()), 1.6)
	return b
}

// short returns a text on at most two lines. It reduces the font size down to
// least for that; a longer text takes more lines.
func short(text string, s style, least, w float64) block {
	for len(wrap(text, s, w)) > 2 && s.size > least {
		s = s.sized(s.size - 0.5)
	}
	return paragraph(text, s, w, left)
}

func (l *letter) title() block {
	var b block
	name := style{size: 13, bold: true, color: accent()}.fit(l.page.typeName(), titleW)
	b.stack(paragraph(l.page.typeName(), name, titleW, right), 0)
	for i, p := range l.page.title() {
		value := body().sized(9.5)
		if i == 0 {
			value = value.sized(12).strong()
		}
		var row block
		x := titleW - value.width(p.value)
		row.line(p.value, value, x, 0)
		s := label().sized(9)
		row.line(p.label, s, x-value.space()-s.width(p.label), value.baseline()-s.baseline())
		b.stack(row, 1.8-float64(i))
	}
	return b
}

// panel returns the box with the buyer and, to the right, the payment terms.
func (l *letter) panel(buyer, terms []pair) block {
	const padding, termsW = 3.0, 64.0
	g := grid{label: label(), caption: caption(), value: body(), gap: 0.6}
	if l.page.Language == "en" {
		g.gap = 1.2
	}
	var inner block
	switch {
	case len(buyer) == 0 && len(terms) == 0:
		return block{}
	case len(buyer) == 0:
		g.w = letterInner - 2*padding
		inner.add(g.block(terms), padding, padding)
	default:
		g.w = letterInner - 2*padding - termsW - gutter
		if len(terms) == 0 {
			g.w = letterInner - 2*padding
		}
		inner.add(g.block(buyer), padding, padding)
		g.w = termsW
		inner.add(g.block(terms), letterInner-padding-termsW, padding)
	}
	var b block
	b.fill(0, letterInner, inner.h+padding, tint())
	b.add(inner, 0, 0)
	return b
}

// amounts returns the totals as a block of a width.
func amounts(rows []amount, w float64) block {
	const padding = 2.5
	var b block
	for i, r := range rows {
		name, value := body(), body()
		gap := 0.9
		switch r.weight {
		case plain:
			name = name.colored(muted()).sized(8.5)
			if i > 0 && rows[i-1].weight == note {
				name, value = name.strong().colored(ink()), value.strong()
			}
		case detail:
			name, value = name.colored(muted()).sized(7.5), value.colored(muted()).sized(7.5)
			gap = 0.3
		case note:
			name, value = name.colored(muted()).sized(8), value.sized(8)
			if rows[i-1].weight == grand {
				gap = 2
			}
		case grand:
			name, value = name.strong().sized(11).colored(accent()), value.strong().sized(11).colored(accent())
			value = value.fit(r.value, w-2*padding-4-name.width(r.label))
			var total block
			total.fill(0, w, name.lineHeight()+3, tint())
			total.fill(0, w, 0.5, accent())
			total.line(r.label, name, padding, 1.7)
			total.line(r.value, value, w-padding-value.width(r.value), 1.7+name.baseline()-value.baseline())
			total.h = name.lineHeight() + 3
			b.stack(total, 1.5)
			continue
		}
		if i == 0 {
			gap = 0
		}
		var line block
		indent := padding
		if r.weight == detail {
			indent += 3
		}
		// The label wraps; the amount stays on one line.
		room := w - indent - padding - 2 - value.width(r.value)
		text := paragraph(r.label, name, max(room, 20), left)
		line.add(text, indent, 0)
		if r.caption != "" {
			line.add(paragraph(r.caption, caption(), max(room, 20), left), indent, line.h-0.4)
		}
		line.line(r.value, value, w-padding-value.width(r.value), 0)
		b.stack(line, gap)
	}
	return b
}
