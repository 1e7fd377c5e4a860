package main

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
)

const (
	stubAbove = 12 // from a box to the first track
	stubBelow = 20 // from the last track to a box, with room for the arrow's head
	bandInset = 12 // from a band's edge to its boxes
	bandGap   = 8
	corner    = 6
	nameSize  = 15
	textSize  = 12
)

// The colours of lines, for light and for dark pages.
func palette() [][2]string {
	return [][2]string{
		{"#0969da", "#58a6ff"}, {"#bc4c00", "#f0883e"}, {"#1a7f37", "#3fb950"}, {"#8250df", "#bc8cff"},
		{"#bf3989", "#f778ba"}, {"#0e7490", "#39c5cf"}, {"#9a6700", "#d29922"}, {"#cf222e", "#ff7b72"},
	}
}

const style = `
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.page{fill:#fff}.band{fill:#f3f5f8}.box{fill:#fff;stroke:#c3cad3}.beside{stroke-dasharray:5 4}
.name{font-size:15px;font-weight:600;fill:#1f2328}.owns{font-size:12px;fill:#4b535d}
.floor{font-size:26px;font-weight:600;fill:#8b949e}.label{font-size:11px;fill:#6e7781}
.line{fill:none;stroke-width:1.6}
`

const dark = `.page{fill:#0d1117}.band{fill:#161b22}.box{fill:#0d1117;stroke:#3d444d}
.name{fill:#f0f6fc}.owns{fill:#b1bac4}.floor{fill:#6e7681}.label{fill:#8b949e}
`

// render writes the layout as SVG.
func render(l *layout) []byte {
	tops, nets, height := l.heights()
	colours := l.colours()
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">`, l.width, height, l.width, height)
	p(`<title id="title">The packages and their imports</title>`)
	p(`<desc id="desc">%s</desc>`, html.EscapeString(l.describe()))
	p("<style>%s", style)
	for i, c := range palette() {
		p(".l%d{stroke:%s}.f%d{fill:%s}", i, c[0], i, c[0])
	}
	p("@media (prefers-color-scheme:dark){\n%s", dark)
	for i, c := range palette() {
		p(".l%d{stroke:%s}.f%d{fill:%s}", i, c[1], i, c[1])
	}
	p("}\n</style>")
	p(`<rect class="page" width="%d" height="%d" rx="8"/>`, l.width, height)
	for _, band := range l.bands {
		top, bottom := tops[band.first]-bandInset, tops[band.last]+boxHeight+bandInset
		p(`<rect class="band" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, margin, top, l.width-2*margin, bottom-top)
		p(`<text class="label" x="%d" y="%d" text-anchor="middle">floor</text>`, margin+labelWidth/2, (top+bottom)/2-12)
		p(`<text class="floor" x="%d" y="%d" text-anchor="middle">%d</text>`, margin+labelWidth/2, (top+bottom)/2+14, band.floor)
	}
	for r := range l.rows {
		for _, n := range nets[r] {
			p(`<path class="line l%d" d="%s"/>`, colours[n.target], n.path(tops[r]+boxHeight, tops[r+1]))
		}
		for _, n := range l.rows[r] {
			if n.pkg == nil {
				p(`<path class="line l%d" d="M%d %dV%d"/>`, colours[n.target], n.x, tops[r], tops[r]+boxHeight)
			}
		}
	}
	for r, row := range l.rows {
		for _, n := range row {
			if n.pkg != nil {
				colour, imported := colours[n.target]
				box(p, n, tops[r], colour, imported)
			}
		}
	}
	p(`<text class="label" x="%d" y="%d">An arrow leads from a package to one that it imports; arrows that follow from others are left out. All arrows to one package share one line. A dashed box stands on no floor.</text>`, margin, height-margin-4)
	p("</svg>")
	return b.Bytes()
}

// box writes a package: its name, what it owns, and the head of the arrow that
// leads to it.
func box(p func(string, ...any), n *node, top, colour int, imported bool) {
	class := "box"
	if n.pkg.beside {
		class = "box beside"
	}
	left := n.x - boxWidth/2
	p(`<g><title>%s: %s</title>`, n.pkg.name, html.EscapeString(n.pkg.owns))
	p(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class, left, top, boxWidth, boxHeight)
	lines := shorten(n.pkg.owns, textSize, boxWidth-20, 3)
	y := top + (boxHeight-nameSize-len(lines)*(textSize+2))/2 + nameSize - 1
	p(`<text class="name" x="%d" y="%d" text-anchor="middle">%s</text>`, n.x, y, strings.TrimPrefix(n.pkg.name, "internal/"))
	for i, line := range lines {
		p(`<text class="owns" x="%d" y="%d" text-anchor="middle">%s</text>`, n.x, y+(i+1)*(textSize+2)+2, html.EscapeString(line))
	}
	p(`</g>`)
	if imported {
		p(`<path class="f%d" d="M%d %dl-5 -9h10z"/>`, colour, n.x, top)
	}
}

// heights returns the top of each row, the nets below it, and the height of the
// picture.
func (l *layout) heights() (tops []int, nets [][]net, height int) {
	y := margin + bandInset
	for r := range l.rows {
		tops = append(tops, y)
		routed, tracks := l.route(r)
		nets = append(nets, routed)
		gap := stubAbove + stubBelow + max(0, tracks-1)*trackGap
		if slices.ContainsFunc(l.bands, func(b band) bool { return b.last == r }) {
			gap = max(gap, 2*bandInset+bandGap)
		}
		y += boxHeight + gap
	}
	return tops, nets, tops[len(tops)-1] + boxHeight + bandInset + 36 + margin
}

// colours gives a colour to each package that is imported, from top left to
// bottom right: of the colours that the fewest lines beside its own have, the
// one that is used least.
func (l *layout) colours() map[string]int {
	passes := map[string]map[int]bool{} // the rows below which there is a line to the package
	for r, row := range l.rows {
		for _, n := range row {
			for _, d := range n.down {
				if passes[d.target] == nil {
					passes[d.target] = map[int]bool{}
				}
				passes[d.target][r] = true
			}
		}
	}
	colours := map[string]int{}
	for _, row := range l.rows {
		for _, n := range row {
			if n.pkg == nil || passes[n.target] == nil {
				continue
			}
			uses := make([]int, len(palette()))
			for other, c := range colours {
				uses[c]++
				for r := range passes[other] {
					if passes[n.target][r] {
						uses[c] += 1000
					}
				}
			}
			colours[n.target] = slices.Index(uses, slices.Min(uses))
		}
	}
	return colours
}

// path draws the net between the bottom of a row and the top of the next.
func (n net) path(above, below int) string {
	if n.straight() {
		return fmt.Sprintf("M%d %dV%d", n.end, above, below)
	}
	y := above + stubAbove + n.track*trackGap
	var b strings.Builder
	for _, x := range n.starts {
		c := min(corner, abs(n.end-x)/2)
		if x > n.end {
			c = -c
		}
		fmt.Fprintf(&b, "M%d %dV%dQ%d %d %d %dH%dQ%d %d %d %dV%d", x, above, y-abs(c), x, y, x+c, y, n.end-c, n.end, y, n.end, y+abs(c), below)
	}
	return b.String()
}

// describe says in words what the picture shows.
func (l *layout) describe() string {
	var b strings.Builder
	b.WriteString("One band for each floor, the highest at the top; imports point down.")
	for _, band := range l.bands {
		for _, row := range l.rows[band.first : band.last+1] {
			for _, n := range row {
				if n.pkg != nil && len(n.pkg.imports) > 0 {
					fmt.Fprintf(&b, " Floor %d: %s imports %s.", band.floor, n.pkg.name, strings.Join(n.pkg.imports, ", "))
				} else if n.pkg != nil {
					fmt.Fprintf(&b, " Floor %d: %s.", band.floor, n.pkg.name)
				}
			}
		}
	}
	return strings.ReplaceAll(b.String(), "internal/", "")
}
