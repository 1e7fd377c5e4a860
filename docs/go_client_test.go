package docs

import (
	"strings"
	"testing"
)

// The code that the page for integrators shows is part of an example that runs.
func TestTheGoOfThePageIsAnExample(t *testing.T) {
	t.Parallel()
	examples := read(t, "../client/example_test.go")
	shown := "\t" + strings.ReplaceAll(block(t, read(t, "integration.md"), "go"), "\n", "\n\t") + "\n"
	if !strings.Contains(examples, shown) {
		t.Errorf("client/example_test.go does not contain the code of integration.md:\n%s", shown)
	}
}
