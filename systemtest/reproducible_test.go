package systemtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// copySources copies what a build needs into another folder.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, relative := d.Name(), strings.TrimPrefix(path, from)
		if d.IsDir() && (strings.HasPrefix(name, ".") && path != from || name == "testdata" || relative == "/bin" || relative == "/data") {
			return fs.SkipDir
		}
		if d.IsDir() {
			return os.MkdirAll(to+relative, 0o700)
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to+relative, content, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The same sources in two folders give the same bytes, so that everyone can check a
// release by building it again.
func TestTwoBuildsHaveTheSameBytes(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	copied, second := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "fiscalhub")
	copySources(t, root, copied)
	if err := harness.Build(copied, second); err != nil {
		t.Fatal(err)
	}
	var programs [2][]byte
	for i, path := range []string{harness.Program(t), second} {
		if programs[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
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
