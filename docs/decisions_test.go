package docs

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each decision has a date and a status below its title, and then says why, what
// and what follows.
func TestDecisionsHaveDateStatusAndSections(t *testing.T) {
	t.Parallel()
	decisions, err := filepath.Glob("decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`\A# \d+\. [^\n]+\n\nDate: (\d{4}-\d\d-\d\d) · Status: (?:proposed|accepted|superseded by \d+)\n\n## Context\n`)
	for _, page := range decisions {
		text := read(t, page)
		m := head.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s does not begin with its title, \"Date: YYYY-MM-DD · Status: accepted\" and its context", page)
			continue
		}
		if _, err := time.Parse(time.DateOnly, m[1]); err != nil {
			t.Errorf("%s: %v", page, err)
		}
		var sections []string
		for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(text, -1) {
			sections = append(sections, m[1])
		}
		if diff := cmp.Diff([]string{"Context", "Decision", "Consequences"}, sections); diff != "" {
			t.Errorf("%s: sections (-want +have):\n%s", page, diff)
		}
	}
}
