package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wantOnly fails unless the folder of path holds the file with the text, for its
// owner only, and nothing else.
func wantOnly(t *testing.T, path, text string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text {
		t.Errorf("the file holds %q, %v; want %q", got, err, text)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder holds %v, %v; want one file", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestCreateKeepsAnExistingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := Create(path, "first"); err != nil {
		t.Fatal(err)
	}
	wantOnly(t, path, "first")
	if err := Create(path, "second"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over an existing file: %v, want fs.ErrExist", err)
	}
	wantOnly(t, path, "first")
}

func TestReplaceReplacesAnExistingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"first", "second", ""} {
		if err := Replace(path, text); err != nil {
			t.Fatal(err)
		}
		wantOnly(t, path, text)
	}
}

func TestTheFolderMustExist(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "file")
	for name, write := range map[string]func(string, string) error{"Create": Create, "Replace": Replace} {
		err := write(path, "text")
		if want := "create a file in " + filepath.Dir(path) + ": "; !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want fs.ErrNotExist with %q", name, err, want)
		}
	}
}

// A failed write leaves no temporary file.
func TestAFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	failure := errors.New("no space left")
	err := write(filepath.Join(dir, "file"), "text", func(string, string) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("%v, want %v", err, failure)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the folder holds %v, %v; want nothing", entries, err)
	}
}

func TestOneOfManyCreatesSucceeds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	var winner atomic.Pointer[string]
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			text := strconv.Itoa(i)
			switch err := Create(path, text); {
			case err == nil:
				if !winner.CompareAndSwap(nil, &text) {
					t.Error("two calls created the file")
				}
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("%v, want fs.ErrExist", err)
			}
		})
	}
	all.Wait()
	if winner.Load() == nil {
		t.Fatal("no call created the file")
	}
	wantOnly(t, path, *winner.Load())
}

func TestMkdirAllCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "one", "two", "three")
	for range 2 { // the second call finds the folder
		if err := MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder: %v, %v; want mode 0700", info, err)
		}
	}
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{file, filepath.Join(file, "below")} {
		if err := MkdirAll(wrong, 0o700); err == nil {
			t.Errorf("MkdirAll over a file succeeds: %s", wrong)
		}
	}
}
