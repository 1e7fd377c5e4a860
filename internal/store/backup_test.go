package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A backup during writes is complete, and shows the database at one moment.
func TestBackupWhileOthersWrite(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	s := storetest.Open(t, address, time.Now)
	scope := addScope(t, s)
	stop, begun := make(chan struct{}), make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Register(t.Context(), sampleRegistration(sampleInvoice(scope, name("X", i)))); err != nil {
				t.Error(err)
				return
			}
			if i == 20 {
				close(begun)
			}
		}
	})
	<-begun
	for i := range 3 {
		file := filepath.Join(t.TempDir(), name("copy", i)+".db")
		size, err := store.Backup(t.Context(), address, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v, want %d bytes", info, err, size)
		}
		if _, err := store.Backup(t.Context(), address, file, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("onto an existing file: %v, want ErrExist", err)
		}
		copied := storetest.Open(t, "sqlite:"+file, time.Now)
		if n := count(t, copied, "invoices"); n < 20 || n != count(t, copied, "history") || n != count(t, copied, "idempotency") {
			t.Errorf("%d invoices, %d events, %d answers", n, count(t, copied, "history"), count(t, copied, "idempotency"))
		}
		if got := lines(t, copied, `PRAGMA integrity_check`); strings.Join(got, "") != "ok" {
			t.Errorf("integrity: %v", got)
		}
	}
	close(stop)
	writer.Wait()
}

func TestBackupNeedsASQLiteDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	if _, err := store.Backup(t.Context(), "sqlite:"+filepath.Join(dir, "none.db"), file, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a database: %v, want ErrNotExist", err)
	}
	if _, err := store.Backup(t.Context(), "postgres://127.0.0.1:1/x", file, nil); !errors.Is(err, store.ErrHasOwnTools) {
		t.Errorf("PostgreSQL: %v, want ErrHasOwnTools", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files that remain: %v, %v", left, err)
	}
}

// An interrupted backup leaves no file, and the next one succeeds. The progress ends at the
// size of the copy or before.
func TestAnInterruptedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	address, dir := storetest.Address(t, "sqlite"), t.TempDir()
	s := storetest.Open(t, address, time.Now)
	addInvoice(t, s, addScope(t, s), "X")
	file := filepath.Join(dir, "copy.db")
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := store.Backup(ctx, address, file, func(int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files that remain: %v, %v", left, err)
	}
	var done, total int64
	size, err := store.Backup(t.Context(), address, file, func(d, n int64) { done, total = d, n })
	if err != nil || total == 0 || done > total || size > total {
		t.Errorf("the progress ended with %d of %d, and the copy has %d bytes, %v", done, total, size, err)
	}
}
