package store_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// wantPrivate checks that only the owner can open the files of a database.
func wantPrivate(t *testing.T, when string, files ...string) {
	t.Helper()
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s: %s has the mode %04o, want 0600", when, filepath.Base(file), mode)
		}
	}
}

// Only the owner can read a SQLite database, whatever the umask is, and although the
// folder exists and everybody can open it.
func TestOnlyTheOwnerCanReadANewDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "fiscalhub.db")
	s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	addScope(t, s)
	wantPrivate(t, "while it is open", path, path+"-wal", path+"-shm")
	file := filepath.Join(folder, "copy.db")
	if _, err := store.Backup(t.Context(), "sqlite:"+path, file, nil); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, "the backup", file)

	path = filepath.Join(folder, "umask.db")
	cmd := helper(t, "sqlite:"+path)
	cmd.Args = []string{"sh", "-c", `umask 0; exec "$0"`, cmd.Path}
	cmd.Path = "/bin/sh"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantPrivate(t, "with the umask 0", path)
}

// The files of an earlier release, which others could read, are narrowed with a warning.
func TestTheFilesOfADatabaseAreNarrowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fiscalhub.db")
	open := func(log *bytes.Buffer) *store.Store {
		t.Helper()
		s, err := store.Open(context.WithoutCancel(t.Context()), "sqlite:"+path, store.Options{Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	var first, second, third bytes.Buffer
	addScope(t, open(&first))
	files := []string{path, path + "-wal", path + "-shm"}
	for _, file := range files {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(&second)
	wantPrivate(t, "after another start", files...)
	for _, file := range files {
		if !strings.Contains(second.String(), "level=WARN") || !strings.Contains(second.String(), "file="+file) {
			t.Errorf("no warning about %s in %s", file, &second)
		}
	}
	open(&third)
	if strings.Contains(first.String()+third.String(), "level=WARN") {
		t.Errorf("warnings without a reason: %s%s", &first, &third)
	}
}
