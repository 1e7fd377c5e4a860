package printed

import (
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// minSize is the smallest font size on a page, in points.
const minSize = 7

// missing replaces a character that the fonts do not have, so that the reader
// sees that a character is missing.
const missing = '\uFFFD'

// advances are the widths of the characters of a font, in thousandths of its
// size, and 0 for characters that the font does not have.
type advances []uint16

// metrics returns the advances of the regular and of the bold font. The PDF
// library cannot measure them: the layout comes before the writing, and the
// library indexes past its table for characters beyond U+FFFF.
var metrics = sync.OnceValue(func() (m [2]advances) {
	for i, ttf := range [2][]byte{goregular.TTF, gobold.TTF} {
		m[i] = measure(ttf)
	}
	return m
})

func measure(ttf []byte) advances {
	f, err := sfnt.Parse(ttf)
	if err != nil {
		return nil // not reachable: the fonts are embedded, and a test parses them
	}
	var buffer sfnt.Buffer
	widths := make(advances, 1<<16)
	for r := range widths {
		glyph, err := f.GlyphIndex(&buffer, rune(r))
		if err != nil || glyph == 0 {
			continue
		}
		if w, err := f.GlyphAdvance(&buffer, glyph, fixed.I(1000), font.HintingNone); err == nil {
			widths[r] = uint16(w.Round()) //nolint:gosec // no character is 65 times as wide as its font size
		}
	}
	return widths
}

// has reports whether both fonts have a character.
func has(r rune) bool {
	m := metrics()
	return r >= 0 && int(r) < len(m[0]) && m[0][r] > 0 && m[1][r] > 0
}

// A style is the font size, weight and colour of a text.
type style struct {
	size  float64 // points
	bold  bool
	color color
}

type color struct{ r, g, b int }

// The accent colour and the greys of a page.
func accent() color   { return color{24, 62, 99} }
func tint() color     { return color{236, 241, 246} }
func ink() color      { return color{28, 32, 38} }
func muted() color    { return color{92, 101, 112} }
func hairline() color { return color{213, 219, 226} }
func white() color    { return color{255, 255, 255} }
func black() color    { return color{} }

func (s style) sized(size float64) style      { s.size = max(size, minSize); return s }
func (s style) strong() style                 { s.bold = true; return s }
func (s style) colored(c color) style         { s.color = c; return s }
func (s style) lineHeight() float64           { return s.size * 1.24 * millimetre }
func (s style) baseline() float64             { return s.size * 0.95 * millimetre }
func (s style) space() float64                { return s.width(" ") }
func (s style) length(units int) float64      { return float64(units) / 1000 * s.size * millimetre }
func (s style) width(text string) float64     { return s.length(s.units(text)) }
func (s style) fits(t string, w float64) bool { return s.width(t) <= w+tolerance }

const (
	millimetre = 25.4 / 72 // the length of a point in millimetres
	tolerance  = 0.001     // by which a text may be wider than its space, for rounding
)

func (s style) units(text string) int {
	m := metrics()[0]
	if s.bold {
		m = metrics()[1]
	}
	n := 0
	for _, r := range text {
		if int(r) < len(m) {
			n += int(m[r])
		}
	}
	return n
}

// fit returns the style in the largest size, at most its own, at which the text
// is no wider than w. It never goes below minSize, even when the text is then too
// wide.
func (s style) fit(text string, w float64) style {
	for s.size > minSize && !s.fits(text, w) {
		s = s.sized(s.size - 0.25)
	}
	return s
}
