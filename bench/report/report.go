// Package report describes the figures of a run of the benchmark, and shows them as a
// table, as a chart and as a page of the documentation.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// A Report is the result of one run.
type Report struct {
	Machine Machine  `json:"machine"`
	Date    string   `json:"date"`    // as in 2026-11-16
	Command string   `json:"command"` // that made it
	Figures []Figure `json:"figures"`
}

// A Machine is where a run was made. The load is that before and after the run: a machine
// that does other work at the same time gives figures that are too low.
type Machine struct {
	Processor  string `json:"processor"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory"`
	System     string `json:"system"`
	Disk       string `json:"disk"` // where the databases were
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
	Stolen     string `json:"stolen,omitempty"` // processor time that other machines on the same hardware took
}

// A Figure is one measured value, with a baseline when there is one.
type Figure struct {
	Group    string `json:"group"` // the measurement that made it
	Name     string `json:"name"`
	Measured string `json:"measured"` // with its unit
	Baseline string `json:"baseline,omitempty"`
	// Ratio is the measured value divided by the baseline; 0: there is none.
	Ratio float64 `json:"ratio,omitempty"`
	Goal  string  `json:"goal,omitempty"`  // of the ratio, or of the value when there is no baseline
	About string  `json:"about,omitempty"` // what the baseline is
}

// Part reports whether the figure belongs to the one before it.
func (f Figure) Part() bool { return strings.HasPrefix(f.Name, " ") }

// Met reports whether the ratio meets the goal. known is false for a goal that is not a
// bound of the ratio.
func (f Figure) Met() (met, known bool) {
	var sign string
	var bound float64
	if n, err := fmt.Sscanf(f.Goal, "%s %g", &sign, &bound); n != 2 || err != nil || f.Ratio == 0 {
		return false, false
	}
	if fields := strings.Fields(f.Goal); len(fields) > 2 { // a bound of the value, as ≤ 50 ms
		return false, false
	}
	switch sign {
	case "≥":
		return f.Ratio >= bound, true
	case "≤":
		return f.Ratio <= bound, true
	case "<":
		return f.Ratio < bound, true
	}
	return false, false
}

// ratio returns the ratio as text.
func (f Figure) ratio() string {
	if f.Ratio == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", f.Ratio)
}

// Table writes figures as a table for a terminal.
func Table(out io.Writer, figures []Figure) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "figure\tmeasured\tbaseline\tratio\tgoal\tbaseline is\t") // the writer keeps its error for Flush
	for _, f := range figures {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", f.Name, f.Measured, f.Baseline, f.ratio(), f.Goal, f.About)
	}
	return t.Flush()
}

// Read reads a report from a file of Write.
func Read(path string) (r Report, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Write writes the report as JSON.
func (r Report) Write(path string) error {
	raw, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644) //nolint:gosec // figures for everyone to read
}
