// Command metrics writes docs/metrics.md from the catalogue of metrics.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/metric"
)

// main writes the page of the module in the working directory.
func main() {
	if err := os.WriteFile(filepath.Join("docs", "metrics.md"), []byte(page()), 0o644); err != nil { //nolint:gosec // a page of the documentation, for everyone to read
		fmt.Fprintln(os.Stderr, "metrics: run it in the folder of the module:", err)
		os.Exit(1)
	}
}

const introduction = `# Metrics

This page is made from the code: ` + "`go run ./docs/metrics`" + ` writes it from ` + "`internal/metric`" + `.

` + "`/metrics`" + ` shows figures in the format of Prometheus. On the API's listener it answers only clients on the same machine; ` + "`--metrics-listen`" + ` opens a listener of its own ([operations](operations/proxy.md#behind-a-proxy)). In addition to the figures below there are those of the Go runtime (` + "`go_*`" + `) and of the process (` + "`process_*`" + `).

- No label contains an id of a taxpayer, a document or a client. A figure about taxpayers is the worst value of all of them, or how many are beyond a limit ([decision 21](decisions/0021-metrics-logs-and-traces.md)). The log and the commands say which ones.
- Figures of the database are the same on all nodes: use ` + "`max`" + ` over them. All other figures are those of one node since its start: use ` + "`sum`" + ` over nodes.
- A node reads the figures of the database at most every 10 seconds, in at most 2 seconds, and counts at most 10,000 rows for each of them. A scrape therefore costs the same however much is waiting.
- Figures marked *live* do not exist in the sandbox.
`

// page returns the whole page.
func page() string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, group := range metric.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", group)
		for _, d := range metric.All() {
			if d.Group == group {
				b.WriteString(section(d))
			}
		}
	}
	return b.String()
}

// section returns the description of one metric.
func section(d metric.Definition) string {
	var b strings.Builder
	live := ""
	if d.LiveOnly {
		live = ", live"
	}
	fmt.Fprintf(&b, "\n### `%s`\n\n%s%s. %s\n\n", d.Name, d.Type, live, d.Help)
	for _, l := range d.Labels {
		values := l.Of
		if l.Values != nil {
			values = "`" + strings.Join(l.Values, "`, `") + "`"
		}
		fmt.Fprintf(&b, "- label `%s`: %s\n", l.Name, values)
	}
	fmt.Fprintf(&b, "- bad: %s\n", lower(d.Bad))
	return b.String()
}

// lower returns a text whose first letter is small, unless it begins with code.
func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }
