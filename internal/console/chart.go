package console

import (
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/overview"
)

// chart is a bar chart of documents over time, for the template "chart". The template also
// shows it as a table.
type chart struct {
	ID          string // of the element; also the end of the keys of its texts
	Width       float64
	Bars        []chartBar
	Max, Total  int64
	First, Last string // labels of the axis
	Middle      string
	Groups      []chartGroup
}

// chartBar is one hour or one day.
type chartBar struct {
	Label string
	Total int64
	Parts []chartPart // by group, from the ground up
}

// chartPart is the share of a group in a bar. The chart is 100 units high.
type chartPart struct {
	Tone                tone
	Count               int64
	X, Y, Width, Height float64
}

// chartGroup is a set of statuses that a chart shows in one colour.
type chartGroup struct {
	Tone  tone
	Name  string
	Total int64
}

const (
	chartHeight = 100.0
	barWidth    = 10.0
	barGap      = 2.0
)

// chartGroups returns the groups from the ground up.
func chartGroups() []tone { return []tone{good, busy, warn, bad} }

// groupOf returns the group of a status in a chart. A document with remarks is valid.
func groupOf(s fiscal.Status) tone {
	switch s {
	case fiscal.AcceptedConditional:
		return good
	case fiscal.Queued:
		return busy
	default:
		return statusTone(s)
	}
}

// newChart returns the chart of bars of the overview.
func (x *request) newChart(id string, bars []overview.Bar, layout string) chart {
	c := chart{ID: id, Width: barWidth * float64(len(bars))}
	label := func(at time.Time) string { return at.In(fiscal.Zone()).Format(layout) }
	for _, bar := range bars {
		c.Max, c.Total = max(c.Max, bar.Total()), c.Total+bar.Total()
	}
	totals := map[tone]int64{}
	for i, bar := range bars {
		counts := map[tone]int64{}
		for status, n := range bar.Documents {
			counts[groupOf(status)] += n
		}
		shown := chartBar{Label: label(bar.Start), Total: bar.Total()}
		y := chartHeight
		for _, group := range chartGroups() {
			height := chartHeight * float64(counts[group]) / float64(max(c.Max, 1))
			if counts[group] > 0 {
				height = max(height, 1.5) // a single document must be seen
			}
			y -= height
			shown.Parts = append(shown.Parts, chartPart{group, counts[group], float64(i)*barWidth + barGap/2, max(y, 0), barWidth - barGap, height})
			totals[group] += counts[group]
		}
		c.Bars = append(c.Bars, shown)
	}
	for _, group := range chartGroups() {
		c.Groups = append(c.Groups, chartGroup{group, x.text("chart." + string(group)), totals[group]})
	}
	if n := len(bars); n > 0 {
		c.First, c.Middle, c.Last = label(bars[0].Start), label(bars[n/2].Start), label(bars[n-1].Start)
	}
	return c
}

// shortDuration writes a length of time as people read it, like 1.4 s or 2 min 5 s.
func shortDuration(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}
