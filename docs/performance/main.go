// Command performance writes docs/performance.md and its chart from a report of the
// benchmark. Without an argument it uses docs/performance/run.json; with the file of
// another report, it first takes that one over.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fiscalhub/fiscalhub/bench/report"
)

// main writes the files of the module in the working directory.
func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "performance: run it in the folder of the module:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	kept := filepath.Join("docs", "performance", "run.json")
	from := kept
	if len(args) > 0 {
		from = args[0]
	}
	r, err := report.Read(from)
	if err != nil {
		return err
	}
	if err := r.Write(kept); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join("docs", "performance.md"), r.Page(), 0o644); err != nil { //nolint:gosec // a page of the documentation, for everyone to read
		return err
	}
	return os.WriteFile(filepath.Join("docs", "pictures", "performance.svg"), r.Chart(), 0o644) //nolint:gosec // as above
}
