package printed

// A grid lays out pairs of labels and values. A caption is below its label, so
// that label and value stay side by side.
type grid struct {
	label, caption, value style
	w                     float64
	gap                   float64 // between two lines
}

const (
	pairGap = 5.0 // between two pairs on one line
	// captionRise is how much closer than a line of its own a caption is to its
	// label.
	captionRise = 0.6
	// hangingPart is the part of the width that a value needs next to its label.
	// A value that needs more lines than one and has less space moves below its
	// label.
	hangingPart = 0.55
)

// styleOf returns the style of the value of a pair.
func (g grid) styleOf(p pair) style {
	s := g.value
	s.bold = p.strong
	return s
}

// start returns where the value of a pair begins, right of its label.
func (g grid) start(p pair) float64 {
	return max(g.label.width(p.label), g.caption.width(p.caption)) + g.styleOf(p).space()
}

// cell returns a pair within a width.
func (g grid) cell(p pair, w float64) block {
	var b block
	value, at := g.styleOf(p), g.start(p)
	b.line(p.label, g.label, 0, 0)
	if !value.fits(p.value, w-at) && w-at < hangingPart*w {
		if p.caption != "" {
			b.line(p.caption, g.caption, g.label.width(p.label)+2*value.space(), g.label.baseline()-g.caption.baseline())
		}
		b.stack(paragraph(p.value, value, w, left), 0)
		return b
	}
	if p.caption != "" {
		b.line(p.caption, g.caption, 0, g.label.lineHeight()-captionRise)
	}
	// Label and value have the same baseline, even in different sizes.
	b.add(paragraph(p.value, value, w-at, left), at, g.label.baseline()-value.baseline())
	return b
}

// list returns pairs below each other, each with its value right after its label.
func (g grid) list(pairs []pair) block {
	var b block
	for i, p := range pairs {
		gap := g.gap
		if i == 0 {
			gap = 0
		}
		b.stack(g.cell(p, g.w), gap)
	}
	return b
}

// columns returns pairs below each other, with all values in one column.
func (g grid) columns(pairs []pair) block {
	var b block
	at := 0.0
	for _, p := range pairs {
		at = max(at, g.label.width(p.label), g.caption.width(p.caption))
	}
	at = min(at+2, g.w/2)
	for i, p := range pairs {
		var row block
		value := g.styleOf(p)
		row.line(p.label, g.label, 0, 0)
		if p.caption != "" {
			row.line(p.caption, g.caption, 0, g.label.lineHeight()-captionRise)
		}
		row.add(paragraph(p.value, value, g.w-at, left), at, g.label.baseline()-value.baseline())
		gap := g.gap
		if i == 0 {
			gap = 0
		}
		b.stack(row, gap)
	}
	return b
}

// flow returns pairs next to each other, on as few lines as possible. It does not
// break a pair that fits on a line.
func (g grid) flow(pairs []pair) block {
	var b, line block
	x := 0.0
	end := func() {
		gap := g.gap
		if b.h == 0 {
			gap = 0
		}
		b.stack(line, gap)
		line, x = block{}, 0
	}
	for _, p := range pairs {
		w := g.start(p) + g.styleOf(p).width(p.value)
		if x > 0 && x+w > g.w+0.001 {
			end()
		}
		line.add(g.cell(p, g.w-x), x, 0)
		x += w + pairGap
	}
	if len(line.items) > 0 {
		end()
	}
	return b
}
