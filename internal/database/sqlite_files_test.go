package database_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
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
	s, err := database.Open(t.Context(), "sqlite:"+path, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := insertItem(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, "while it is open", path, path+"-wal", path+"-shm")
	file := filepath.Join(folder, "copy.db")
	if _, err := database.Backup(t.Context(), "sqlite:"+path, file, nil); err != nil {
		t.Fatal(err)
	}
	wantPrivate(t, "the backup", file)

	path = filepath.Join(folder, "umask.db")
	cmd := storetest.Helper(t, "sqlite:"+path)
	cmd.Args = []string{"sh", "-c", `umask 0; exec "$0"`, cmd.Path}
	cmd.Path = "/bin/sh"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantPrivate(t, "with the umask 0", path)
}

// An address that names a folder is refused by a message with its path. The folder stays
// as it is: the mode 0600 of a database would lock everyone out of it.
func TestAFolderIsNoDatabase(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	options := database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	readOnly := options
	readOnly.ReadOnly = true
	for name, open := range map[string]func() error{
		"Open":           func() error { return openAndClose(t, folder, options) },
		"Open read-only": func() error { return openAndClose(t, folder, readOnly) },
		"SQLiteFile":     func() error { _, err := database.SQLiteFile("sqlite:" + folder); return err },
		"Backup": func() error {
			_, err := database.Backup(t.Context(), "sqlite:"+folder, folder+".copy", nil)
			return err
		},
	} {
		err := open()
		if err == nil || !strings.Contains(err.Error(), folder+" is a folder") || errors.Is(err, database.ErrUnavailable) {
			t.Errorf("%s: %v, want an error that says that %s is a folder", name, err, folder)
		}
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder was changed: %v, %v", info, err)
	}
	for _, path := range append(database.SQLiteFiles(folder)[1:], folder+".copy") {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want no file", path, err)
		}
	}
}

func openAndClose(t *testing.T, path string, options database.Options) error {
	t.Helper()
	s, err := database.Open(t.Context(), "sqlite:"+path, database.TestMigrations(), options)
	if err == nil {
		_ = s.Close()
	}
	return err
}

// The files of an earlier release, which others could read, are narrowed with a warning.
func TestTheFilesOfADatabaseAreNarrowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fiscalhub.db")
	open := func(log *bytes.Buffer) *database.DB {
		t.Helper()
		s, err := database.Open(context.WithoutCancel(t.Context()), "sqlite:"+path, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	var first, second, third bytes.Buffer
	if err := insertItem(t.Context(), open(&first)); err != nil {
		t.Fatal(err)
	}
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
