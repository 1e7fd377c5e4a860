package database_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// A backup during writes is complete, and shows the database at one moment.
func TestBackupWhileOthersWrite(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	s := open(t, address)
	stop, begun := make(chan struct{}), make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := insertItem(t.Context(), s); err != nil {
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
		file := filepath.Join(t.TempDir(), fmt.Sprint("copy", i, ".db"))
		size, err := database.Backup(t.Context(), address, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v, want %d bytes", info, err, size)
		}
		if _, err := database.Backup(t.Context(), address, file, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("onto an existing file: %v, want ErrExist", err)
		}
		copied := open(t, "sqlite:"+file)
		var raised int
		if err := copied.Reader().QueryRowContext(t.Context(), `SELECT n FROM counters WHERE name = 'items'`).Scan(&raised); err != nil {
			t.Fatal(err)
		}
		if n := countItems(t, copied); n < 20 || n != raised {
			t.Errorf("%d items, and %d were counted", n, raised)
		}
		var damage string
		if err := copied.Reader().QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&damage); err != nil || damage != "ok" {
			t.Errorf("integrity: %s, %v", damage, err)
		}
	}
	close(stop)
	writer.Wait()
}

func TestBackupNeedsASQLiteDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	if _, err := database.Backup(t.Context(), "sqlite:"+filepath.Join(dir, "none.db"), file, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a database: %v, want ErrNotExist", err)
	}
	if _, err := database.Backup(t.Context(), "postgres://127.0.0.1:1/x", file, nil); !errors.Is(err, database.ErrHasOwnTools) {
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
	address, dir := "sqlite:"+filepath.Join(t.TempDir(), "a.db"), t.TempDir()
	s := open(t, address)
	if err := insertItem(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "copy.db")
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := database.Backup(ctx, address, file, func(int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files that remain: %v, %v", left, err)
	}
	var done, total int64
	size, err := database.Backup(t.Context(), address, file, func(d, n int64) { done, total = d, n })
	if err != nil || total == 0 || done > total || size > total {
		t.Errorf("the progress ended with %d of %d, and the copy has %d bytes, %v", done, total, size, err)
	}
}
