package report

import (
	"fmt"
	"strings"
)

// Page returns docs/performance.md: the figures that have a baseline or a goal.
func (r Report) Page() []byte {
	var b strings.Builder
	b.WriteString(`# Performance

This page is made from a run of the benchmark: ` + "`make bench`" + ` measures and writes ` + "`bin/bench.json`" + `, ` + "`make performance`" + ` writes this page and its chart from it. Do not change it by hand.

Each figure has a baseline: the same work without the service, measured in the same run. Machines differ, but the ratio of both is stable. [run.json](performance/run.json) has the other figures of the run.

![Measured figures and their baselines](pictures/performance.svg)

## The machine

| | |
|---|---|
`)
	m := r.Machine
	for _, row := range [][2]string{
		{"processor", fmt.Sprintf("%s, %d cores", m.Processor, m.Cores)}, {"memory", m.Memory}, {"disk of the databases", m.Disk},
		{"system", m.System}, {"Go", m.Go}, {"PostgreSQL", m.PostgreSQL}, {"load average before and after", m.LoadBefore + " and " + m.LoadAfter},
		{"processor time that other machines took", m.Stolen}, {"date", r.Date}, {"command", "`" + r.Command + "`"},
	} {
		if row[1] == "" {
			continue // an older run does not know it
		}
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], cell(row[1]))
	}
	group := ""
	for _, f := range r.Figures {
		if f.Part() && f.Baseline == "" && f.Goal == "" {
			continue
		}
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| figure | measured | baseline | ratio | goal | baseline is |\n|---|---:|---:|---:|---|---|\n", title(group), Groups()[group])
		}
		name := cell(strings.TrimSpace(f.Name))
		if f.Part() {
			name = "· " + name
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, cell(f.Measured), cell(f.Baseline), f.ratio(), cell(f.Goal), cell(f.About))
	}
	return []byte(b.String())
}

func title(group string) string { return strings.ToUpper(group[:1]) + group[1:] }

// cell returns a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// Groups describes the measurements, by name.
func Groups() map[string]string {
	return map[string]string{
		"documents": "A document is built, signed, verified, checked and printed on one core. The figures are processor time.",
		"creations": "64 clients create invoices of three lines, each after the answer to the last one. Every answer waits for the disk.",
		"send":      "The command `fiscalhub send` sends a file of invoices of three lines, with its start and the check of the file. Both rates share the processors with the service.",
		"latency":   "Creations at a steady 100 a second.",
		"large":     "One invoice of 1000 lines after the other.",
		"list":      "Pages of a list of a million invoices.",
		"overload":  "Creations at five times the load that the service can take.",
		"strangers": "One tenant creates 50 invoices a second while others misuse the service.",
		"live":      "Documents from the request to the verdict, with a simulated tax authority in another process.",
		"events":    "Webhook events to four endpoints.",
		"backlog":   "Claims while many jobs wait.",
		"scale":     "A service with many documents and waiting jobs, compared with a service with one document.",
		"console":   "Pages of the console over many documents.",
		"peers":     "What others do, in the same run, and what they leave out.",
	}
}
