package needtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Tests name what they need as the table in scripts/setup does, so that `make test` says what
// it left out. A test that skips itself for another reason says which command runs it.
func TestEveryNeedIsInTheTable(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	setup, err := os.ReadFile(filepath.Join(root, "scripts", "setup"))
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for _, m := range regexp.MustCompile(`(?m)^need ([a-z0-9-]+) `).FindAllStringSubmatch(string(setup), -1) {
		table = append(table, m[1])
	}
	need := regexp.MustCompile(`needtest\.(?:Program|Missing|LeftOut)\(t, "([^"]+)"`)
	skip := regexp.MustCompile(`\.Skip(f|Now)?\(.*`)
	// Inputs that a generator drew, a run inside of another one, files that a flag writes, and a
	// PostgreSQL without LZ4.
	others := []string{"audit_test.go", "fuzz_test.go", "mutation_test.go", "upgrade_make_test.go", "compress_test.go"}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || filepath.Dir(path) == filepath.Join(root, "internal", "needtest") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		for _, m := range need.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(table, m[1]) {
				t.Errorf("%s needs %q, which the table in scripts/setup does not have", name, m[1])
			}
		}
		for _, call := range skip.FindAllString(string(text), -1) {
			if !strings.Contains(call, "`make ") && !slices.Contains(others, filepath.Base(name)) {
				t.Errorf("%s: %s: use needtest, or name the `make` target that runs the test", name, call)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
