package systemtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// The same sources in two folders give the same bytes, so that everyone can check a
// release by building it again.
func TestTwoBuildsHaveTheSameBytes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	copied, second := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "fiscalhub")
	for _, name := range []string{"cmd", "client", "internal", "openapi", "scripts"} {
		if err := os.CopyFS(filepath.Join(copied, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		writeFile(t, filepath.Join(copied, name), readFile(t, filepath.Join(root, name)))
	}
	if err := harness.Build(copied, second); err != nil {
		t.Fatal(err)
	}
	var programs [2][]byte
	for i, path := range []string{harness.Program(t), second} {
		programs[i] = readFile(t, path)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Errorf("the programs differ: %d and %d bytes", len(programs[0]), len(programs[1]))
	}
	for _, folder := range []string{root, copied} {
		if bytes.Contains(programs[0], []byte(folder)) || bytes.Contains(programs[1], []byte(folder)) {
			t.Errorf("a program contains the name of the folder %s", folder)
		}
	}
}
