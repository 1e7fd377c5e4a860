package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/metric"
)

func TestTheMetricsPageIsCurrent(t *testing.T) {
	t.Parallel()
	shown, err := os.ReadFile("../metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(shown), page()); diff != "" {
		t.Errorf("docs/metrics.md is stale: run go run ./docs/metrics (-page +code):\n%s", diff)
	}
}

// Other pages name only metrics that exist.
func TestPagesNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, d := range metric.All() {
		known[d.Name] = true
	}
	pages, err := filepath.Glob("../operations/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, "../metrics.md", "../../SECURITY.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile("`(fiscalhub_[a-z_]+)").FindAllStringSubmatch(string(text), -1) {
			if role := strings.HasSuffix(found[1], "_migrator") || strings.HasSuffix(found[1], "_service") || strings.HasSuffix(found[1], "_reader"); !role && !known[found[1]] {
				t.Errorf("%s names %s", name, found[1])
			}
		}
	}
}
