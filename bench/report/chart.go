package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The sizes of the chart, in pixels.
const (
	chartWidth = 960
	nameWidth  = 400
	barWidth   = 360
	rowHeight  = 22
	headHeight = 64
)

// longest is the ratio at which a bar ends. A longer bar is cut and has an arrow.
const longest = 2.0

// Chart draws every figure that has a ratio as a bar, in SVG. A line marks the baseline,
// at 1. Bars that miss their goal have another colour and a mark.
func (r Report) Chart() []byte {
	var figures []Figure
	for _, f := range r.Figures {
		if f.Ratio > 0 && !f.Part() {
			figures = append(figures, f)
		}
	}
	height := headHeight + rowHeight*len(figures) + 24
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, `<title id="title">Measured figures and their baselines, %s</title>`+"\n", html.EscapeString(r.Date))
	b.WriteString(`<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#57606a}.met{fill:#2f7d5b}.missed{fill:#b3541e}.plain{fill:#5a7fb0}.line{stroke:#57606a;stroke-dasharray:3 3}` +
		`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9da7b3}}</style>` + "\n")
	fmt.Fprintf(&b, `<text x="8" y="20">Measured, compared with the baseline of the same run</text>`+"\n")
	fmt.Fprintf(&b, `<text class="small" x="8" y="38">%s</text>`+"\n", html.EscapeString(r.Machine.Short()+", "+r.Date))
	at := func(ratio float64) float64 { return nameWidth + barWidth*math.Min(ratio, longest)/longest }
	fmt.Fprintf(&b, `<line class="line" x1="%.0f" y1="%d" x2="%.0f" y2="%d"/><text class="small" x="%.0f" y="%d" text-anchor="middle">baseline</text>`+"\n",
		at(1), headHeight-4, at(1), height-20, at(1), headHeight-8)
	for i, f := range figures {
		y := headHeight + rowHeight*i
		class, mark := "plain", ""
		if met, known := f.Met(); known && met {
			class = "met"
		} else if known {
			class, mark = "missed", " (goal "+f.Goal+")"
		}
		if f.Ratio > longest {
			mark = " →" + mark
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, nameWidth-8, y+15, html.EscapeString(shorten(f.Name, 62)))
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`, class, nameWidth, y+3, math.Max(at(f.Ratio)-nameWidth, 1), rowHeight-7)
		fmt.Fprintf(&b, `<text class="small" x="%.0f" y="%d">%s%s</text>`+"\n", at(f.Ratio)+6, y+15, f.ratio(), html.EscapeString(mark))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func shorten(name string, most int) string {
	if letters := []rune(name); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return name
}

// Short names the machine in one line.
func (m Machine) Short() string {
	return fmt.Sprintf("%s, %d cores, %s of memory", m.Processor, m.Cores, m.Memory)
}
