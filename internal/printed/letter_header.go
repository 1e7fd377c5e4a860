package printed

// letterLogo is the largest height of a logo, in millimetres.
const letterLogo = 15.0

// header returns the top of the first page: on the left the issuer, on the right
// the title and the terms, and below them the buyer.
func (l *letter) header() block {
	const w = letterInner - titleW - gutter
	var issuer block
	if l.logo != nil {
		scale := min(1, letterLogo/l.logo.h)
		issuer.items = append(issuer.items, item{kind: drawLogo, w: l.logo.w * scale, h: l.logo.h * scale})
		issuer.h = l.logo.h*scale + 1.5
	}
	l.names(&issuer, style{size: 12, bold: true, color: ink()}, style{size: 9, color: ink()}, w)
	g := l.fields(w)
	issuer.stack(g.list(l.page.issuer()), 0.8)
	for _, part := range [][]pair{l.page.contact(), l.page.issued()} {
		if len(part) > 0 {
			issuer.stack(g.flow(part), g.gap)
		}
	}
	title := l.title(titleW, 13, 12)
	if terms := l.page.terms(); len(terms) > 0 {
		title.stack(l.fields(titleW).columns(terms), sectionGap)
	}
	return compose(issuer, title, l.panel(l.page.buyer(), l.page.buyerDetails()), titleW)
}

// shortHeader returns the top of the pages after the first. It has only what the
// authority requires on every page, so that the lines and the totals have room.
func (l *letter) shortHeader() block {
	const right = 66.0
	const w = letterInner - right - gutter
	var issuer block
	l.names(&issuer, style{size: 9.5, bold: true, color: ink()}, style{size: 8, color: ink()}, w)
	g := l.fields(w)
	issuer.stack(g.flow(append(l.page.issuer(), l.page.issued()...)), 0.4)
	return compose(issuer, l.title(right, 10, 10), l.panel(l.page.buyer(), nil), right)
}

// compose puts the parts of a header together.
func compose(issuer, title, panel block, titleW float64) block {
	const y = 3.0
	var b block
	b.fill(0, letterInner, 0.9, accent())
	b.add(issuer, 0, y)
	b.add(title, letterInner-titleW, y)
	if panel.h > 0 {
		b.stack(panel, sectionGap)
	}
	return b
}

// names adds the names of the issuer: the most prominent one alone, the others on
// one line when they fit.
func (l *letter) names(b *block, first, rest style, w float64) {
	names := l.page.names()
	b.stack(short(names[0], first, max(minSize, first.size-4), w), 0)
	others := names[1:]
	if line := joined("  ·  ", others...); len(others) > 1 && rest.fits(line, w) {
		others = []string{line}
	}
	for _, name := range others {
		b.stack(short(name, rest, minSize, w), 0.1)
	}
}

// short returns a text on at most two lines. It reduces the font size down to
// least for that; a longer text takes more lines.
func short(text string, s style, least, w float64) block {
	for len(wrap(text, s, w)) > 2 && s.size > least {
		s = s.sized(s.size - 0.5)
	}
	return paragraph(text, s, w, left)
}

// title returns the type of the document and its number, aligned to the right.
func (l *letter) title(w, nameSize, numberSize float64) block {
	var b block
	name := style{size: nameSize, bold: true, color: accent()}.fit(l.page.typeName(), w)
	b.stack(paragraph(l.page.typeName(), name, w, right), 0)
	if english := l.page.typeCaption(); english != "" {
		b.stack(paragraph(english, caption(), w, right), -0.4)
	}
	for i, p := range l.page.title() {
		value := body()
		if p.strong {
			value = value.sized(numberSize).strong()
		}
		var row block
		x := w - value.width(p.value)
		row.line(p.value, value, x, 0)
		x -= value.space() + label().width(p.label)
		y := value.baseline() - label().baseline()
		row.line(p.label, label(), x, y)
		if p.caption != "" {
			x = min(x, w-value.width(p.value)-value.space()-caption().width(p.caption))
			row.line(p.caption, caption(), x, y+label().lineHeight()-captionRise)
		}
		b.stack(row, max(0.2, 0.8-float64(i)))
	}
	return b
}

// panel returns the box of the buyer: who it is on the first lines, and the
// details below.
func (l *letter) panel(buyer, details []pair) block {
	const padding = 2.0
	g := l.fields(letterInner - 2*padding)
	var inner block
	for _, part := range [][]pair{buyer, details} {
		switch {
		case len(part) == 0:
		case inner.h == 0:
			inner.add(g.flow(part), padding, padding)
		default:
			inner.add(g.flow(part), padding, inner.h+g.gap)
		}
	}
	if inner.h == 0 {
		return block{}
	}
	var b block
	b.fill(0, letterInner, inner.h+padding, tint())
	b.add(inner, 0, 0)
	return b
}
