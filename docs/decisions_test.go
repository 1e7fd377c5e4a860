package docs

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each decision says what holds, why, what it costs and where it is in the code. The
// index lists all of them in order.
func TestDecisionsHaveTheirSections(t *testing.T) {
	t.Parallel()
	decisions, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile(`(?m)^## (.+)$`)
	var files []string
	for _, page := range decisions {
		files = append(files, filepath.Base(page))
		var sections []string
		for _, m := range heading.FindAllStringSubmatch(read(t, page), -1) {
			sections = append(sections, m[1])
		}
		if diff := cmp.Diff([]string{"What holds", "Why", "What it costs", "Where"}, sections); diff != "" {
			t.Errorf("%s: sections (-want +have):\n%s", page, diff)
		}
	}
	var listed []string
	for _, m := range regexp.MustCompile(`\(([0-9][^)]+\.md)\)`).FindAllStringSubmatch(read(t, "decisions/README.md"), -1) {
		listed = append(listed, m[1])
	}
	if diff := cmp.Diff(files, listed); diff != "" {
		t.Errorf("the index of the decisions (-files +listed):\n%s", diff)
	}
}
