package store_test

import (
	"context"
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

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func openReadOnly(t *testing.T, address string) (*store.Store, error) {
	t.Helper()
	s, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), ReadOnly: true})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() }) // the test may have closed it
	}
	return s, err
}

// A store that only reads sees the rows and refuses to write, on both engines and beside
// a store that writes.
func TestAReadOnlyStoreReadsAndRefusesToWrite(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		writer, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = writer.Close() }) // an error of Close does not matter to the test
		scope := addScope(t, writer)
		s, err := openReadOnly(t, address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Taxpayer(t.Context(), scope.TaxpayerID); err != nil {
			t.Errorf("a committed row: %v", err)
		}
		err = s.Update(t.Context(), func(*store.Tx) error {
			t.Error("the transaction of a read-only store was begun")
			return nil
		})
		if err == nil {
			t.Error("a read-only store has written")
		}
	})
}

// Opening and reading a SQLite database that no process has open changes no file and
// creates none, whatever their modes are.
func TestAReadOnlyStoreChangesNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "fiscalhub.db")
	if _, err := openReadOnly(t, "sqlite:"+path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a database: %v, want fs.ErrNotExist", err)
	}
	s, err := store.Open(t.Context(), "sqlite:"+path, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	scope := addScope(t, s)
	read := func(when string) {
		t.Helper()
		before := listing(t, folder)
		s, err := openReadOnly(t, "sqlite:"+path)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if _, err := s.Taxpayer(context.WithoutCancel(t.Context()), scope.TaxpayerID); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, listing(t, folder)); diff != "" {
			t.Errorf("%s: the files changed (-before +after):\n%s", when, diff)
		}
	}
	read("while another store is open")
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
