package printed

import (
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// The receipt, in millimetres. Printers for 80 mm rolls print 72 mm.
const (
	receiptW      = 80.0
	receiptMargin = 4.0
	receiptInner  = receiptW - 2*receiptMargin
	receiptEnd    = 5.0 // the margin above and below

	// receiptMaxH is the longest page: PDF readers accept 14,400 points, which
	// are 5,080 mm.
	receiptMaxH = 5000.0

	// receiptQR is larger than on a letter page, because thermal printers have
	// coarse dots.
	receiptQR = 34.0
)

// A receipt lays a document out on a roll. Everything is black, because thermal
// paper has no grey and the receipt must be legible for ten years.
type receipt struct {
	page Page
	logo *logo
	qr   qrCode
}

func printedBody() style  { return style{size: 8.5, color: black()} }
func printedSmall() style { return style{size: 7.5, color: black()} }
func printedCaption() style {
	return style{size: minSize, color: black()}
}

func (r *receipt) sheets() []sheet {
	header, head := r.header(), r.head()
	rows := r.rows()
	foot := r.foot(1, 2) // has the same height on every page
	totals := r.amounts(r.page.totals())
	remarks := remarksIn(r.page.remarks(), receiptInner, printedSmall().strong(), printedCaption(), printedSmall())
	if len(remarks) > 0 {
		totals.stack(dashes(), 1.5)
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
		b.stack(dashes(), 1)
		if i < len(pages)-1 {
			b.stack(r.amounts(r.page.pageTotals(lineNumbers(rows))), 1.5)
		} else {
			b.stack(totals, 1.5)
		}
		b.stack(r.foot(i+1, len(pages)), 3)
		s := &list[i]
		s.add(b, receiptMargin, 0)
		s.w, s.h = receiptW, s.block.h+receiptEnd
	}
	return list
}

// dashes returns a line across the roll.
func dashes() block {
	var b block
	b.fill(0, receiptInner, 0.25, black())
	return b
}

func (r *receipt) header() block {
	var b block
	if r.logo != nil {
		scale := min(1, 50/r.logo.w)
		w, h := r.logo.w*scale, r.logo.h*scale
		b.items = append(b.items, item{kind: drawLogo, x: (receiptInner - w) / 2, w: w, h: h})
		b.h = h + 2
	}
	names := r.page.names()
	b.stack(paragraph(names[0], style{size: 11, bold: true}, receiptInner, centre), 0)
	for _, name := range names[1:] {
		b.stack(paragraph(name, printedBody(), receiptInner, centre), 0.3)
	}
	g := grid{label: printedSmall(), caption: printedCaption(), value: printedBody(), w: receiptInner, gap: 0.4, inline: true}
	b.stack(g.block(r.page.issuer()), 1.5)
	b.stack(dashes(), 1.5)
	b.stack(paragraph(r.page.typeName(), style{size: 10.5, bold: true}, receiptInner, centre), 1.5)
	for _, p := range r.page.title() {
		value := printedBody()
		if p.strong {
			value = value.strong().sized(11)
		}
		var row block
		w := printedSmall().width(p.label) + value.space() + value.width(p.value)
		row.line(p.label, printedSmall(), (receiptInner-w)/2, value.baseline()-printedSmall().baseline())
		row.line(p.value, value, (receiptInner+w)/2-value.width(p.value), 0)
		b.stack(row, 0.4)
	}
	for _, part := range [][]pair{r.page.buyer(), r.page.terms()} {
		if len(part) > 0 {
			b.stack(dashes(), 1.5)
			b.stack(g.block(part), 1.5)
		}
	}
	return b
}

// itbisEnd is the right edge of the ITBIS column when it is on the same line as
// the value.
const itbisEnd = 53.0

// head returns the two header rows of the table, one for each row of a line.
func (r *receipt) head() block {
	var b block
	b.stack(dashes(), 0)
	s := printedCaption().strong()
	h := r.page.headings()
	var titles block
	titles.line("Descripción", s, 0, 0)
	y := titles.h
	titles.line("Cantidad", s, 0, y)
	titles.line("Unidad de Medida", s, 12.6, y)
	titles.line("Precio", s, 35.2, y)
	titles.line("ITBIS", s, itbisEnd-s.width("ITBIS"), y)
	titles.line("Valor", s, receiptInner-s.width("Valor"), y)
	b.stack(titles, 0.8)
	if r.page.Language == "en" {
		s = printedCaption()
		var captions block
		text := h[cellDescription].caption + " · " + h[cellQuantity].caption + ", " + h[cellUnit].caption + ", " + h[cellPrice].caption +
			" · " + h[cellITBIS].caption + " · " + h[cellValue].caption
		captions.add(paragraph(text, s, receiptInner, left), 0, 0)
		b.stack(captions, 0)
	}
	b.stack(dashes(), 0.8)
	return b
}

func (r *receipt) rows() []row {
	lines := r.page.lines()
	rows := make([]row, len(lines))
	for i := range lines {
		rows[i] = row{receiptLine(&lines[i]), i}
	}
	return rows
}

// receiptLine returns a line of the document: the description, and below it the
// amounts, on one row when they fit.
func receiptLine(l *lineText) block {
	s, small := printedBody(), printedSmall().sized(8)
	b := block{h: 1.2}
	indent := 0.0
	if l.exempt {
		b.line("E", s.strong(), 0, b.h)
		indent = 4
	}
	b.add(paragraph(l.text[cellDescription], s, receiptInner-indent, left), indent, 1.2)
	count := joined(" ", l.text[cellQuantity], l.text[cellUnit], "×", l.text[cellPrice])
	y := b.h
	start := itbisEnd - small.width(l.text[cellITBIS])
	alone := !small.fits(count, start-2) || !small.fits(l.text[cellValue], receiptInner-itbisEnd-2)
	if alone {
		b.add(paragraph(count, small, receiptInner, left), 0, y)
		y = b.h
	}
	value := small.strong()
	itbis := l.text[cellITBIS]
	end := receiptInner - value.width(l.text[cellValue])
	if alone {
		start = min(start, end-4-small.width(itbis))
	} else {
		b.line(count, small, 0, y)
	}
	b.line(itbis, small, max(start, 0), y)
	b.line(l.text[cellValue], value, end, y)
	if l.text[cellDiscount] != "" {
		b.line("Descuento "+l.text[cellDiscount], small, 0, b.h)
	}
	return b
}

func (r *receipt) amounts(rows []amount) block {
	var b block
	for _, a := range rows {
		name := printedBody()
		indent := 0.0
		switch a.weight {
		case grand:
			name = name.strong().sized(12)
		case detail:
			name, indent = printedSmall(), 3
		case note:
			name = printedSmall()
		case plain:
		}
		value := name.fit(a.value, receiptInner-indent-15)
		room := receiptInner - indent - 2 - value.width(a.value)
		var line block
		line.add(paragraph(a.label, name, max(room, 12), left), indent, 0)
		if a.caption != "" {
			line.add(paragraph(a.caption, printedCaption(), max(room, 12), left), indent, line.h)
		}
		line.line(a.value, value, receiptInner-value.width(a.value), name.baseline()-value.baseline())
		b.stack(line, 0.6)
	}
	return b
}

// foot returns the QR code with the security code and the time of signature below
// it.
func (r *receipt) foot(page, of int) block {
	var b block
	b.items = append(b.items, item{kind: drawQR, x: (receiptInner - receiptQR) / 2, y: qrBorder, w: receiptQR, h: receiptQR, qr: r.qr})
	b.h = receiptQR + 2*qrBorder
	for _, p := range []pair{
		{label: "Código de Seguridad:", value: r.page.Code.String(), strong: true},
		{label: "Fecha de Firma Digital:", value: fiscal.FormatDGIITime(r.page.Document.SignedAt)},
	} {
		value := printedBody()
		value.bold = p.strong
		w := printedSmall().width(p.label) + value.space() + value.width(p.value)
		var row block
		row.line(p.label, printedSmall(), (receiptInner-w)/2, value.baseline()-printedSmall().baseline())
		row.line(p.value, value, (receiptInner+w)/2-value.width(p.value), 0)
		b.stack(row, 0.4)
	}
	if r.page.Contingency {
		b.stack(paragraph(contingencyLegend, printedSmall(), receiptInner, centre), 2)
	}
	if of > 1 {
		b.stack(paragraph(fmt.Sprintf("Página No. %d de %d", page, of), printedSmall(), receiptInner, right), 2)
	}
	return b
}
