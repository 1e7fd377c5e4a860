package database_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

func openReadOnly(t *testing.T, address string) (*database.DB, error) {
	t.Helper()
	s, err := database.Open(t.Context(), address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), ReadOnly: true})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() }) // the test may have closed it
	}
	return s, err
}

// A database that is only read sees the rows and refuses to write, on both engines and beside
// one that writes.
func TestAReadOnlyDatabaseReadsAndRefusesToWrite(t *testing.T) {
	t.Parallel()
	eachAddress(t, func(t *testing.T, address string) {
		writer, err := database.Open(t.Context(), address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = writer.Close() }) // an error of Close does not matter to the test
		if err := insertItem(t.Context(), writer); err != nil {
			t.Fatal(err)
		}
		s, err := openReadOnly(t, address)
		if err != nil {
			t.Fatal(err)
		}
		if n := countItems(t, s); n != 1 {
			t.Errorf("%d items, want the committed one", n)
		}
		err = s.Update(t.Context(), func(database.Querier) error {
			t.Error("the transaction of a read-only database was begun")
			return nil
		})
		if err == nil {
			t.Error("a read-only database has written")
		}
	})
}

// Opening and reading a SQLite database that no process has open changes no file and
// creates none, whatever their modes are.
func TestAReadOnlyDatabaseChangesNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "fiscalhub.db")
	if _, err := openReadOnly(t, "sqlite:"+path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a database: %v, want fs.ErrNotExist", err)
	}
	s, err := database.Open(t.Context(), "sqlite:"+path, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := insertItem(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	read := func(when string) {
		t.Helper()
		before := listing(t, folder)
		s, err := openReadOnly(t, "sqlite:"+path)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if n := countItems(t, s); n != 1 {
			t.Errorf("%s: %d items", when, n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, listing(t, folder)); diff != "" {
			t.Errorf("%s: the files changed (-before +after):\n%s", when, diff)
		}
	}
	read("while another process has it open")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	read("after it was closed")
}

// listing returns name, mode, size and time of the last change of the files of a folder.
// The index of the write-ahead log has the locks of readers, so only its mode counts.
func listing(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %v", e.Name(), info.Mode())
		if !strings.HasSuffix(e.Name(), "-shm") {
			line += fmt.Sprintf(" %d %s", info.Size(), info.ModTime())
		}
		all = append(all, line)
	}
	return all
}
