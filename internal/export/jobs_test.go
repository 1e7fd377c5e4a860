package export

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// work makes the next export, and reports whether there was one.
func (e *env) work(ctx context.Context, j *Jobs) bool {
	e.t.Helper()
	made, err := j.next(ctx)
	if err != nil && ctx.Err() == nil {
		e.t.Fatal(err)
	}
	return made
}

func (e *env) state(id string) store.Export {
	e.t.Helper()
	found, err := e.store.Export(e.t.Context(), e.scope, id)
	e.must(err)
	return found
}

// An export of the console is made in the background, can be opened, and is removed when
// its time is over.
func TestAnExportIsMadeKeptAndRemoved(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newEnv(t, address)
		e.add(e.day(0), fiscal.Accepted, "Ana")
		j := e.jobs()
		made, err := j.Create(t.Context(), e.scope, e.day(0), e.day(0), false, "Ana Pérez")
		e.must(err)
		if _, err := j.Open(t.Context(), made); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an export that waits can be opened: %v", err)
		}
		if !e.work(t.Context(), j) || e.work(t.Context(), j) {
			t.Error("there was not exactly one export to make")
		}
		got := e.state(made.ID)
		if got.State != store.ExportDone || got.Done != 1 || got.Total != 1 || got.CreatedBy != "Ana Pérez" {
			t.Fatalf("the export is %+v", got)
		}
		if _, err := os.Stat(j.path(made.ID)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file of a complete export is on the node: %v", err)
		}
		e.must(j.Purge(t.Context()))
		if r := e.verify(e.download(e.otherNode(), got)); len(r.Problems) > 0 {
			t.Errorf("Verify reports %v", r.Problems)
		}
		e.clock.Advance(store.ExportKept)
		e.must(j.Purge(t.Context()))
		if _, err := e.store.Export(t.Context(), e.scope, made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the row of an old export: %v", err)
		}
		e.wantNoChunks()
	})
}

// otherNode returns the exports of another node on the database, with a folder of its own.
func (e *env) otherNode() *Jobs {
	e.t.Helper()
	o := e.jobs().o
	o.Dir = e.t.TempDir()
	j, err := NewJobs(o)
	e.must(err)
	return j
}

// download returns the path of a copy of the file of an export.
func (e *env) download(j *Jobs, from store.Export) string {
	e.t.Helper()
	in, err := j.Open(e.t.Context(), from)
	e.must(err)
	path := filepath.Join(e.t.TempDir(), "download.zip")
	out, err := os.Create(path)
	e.must(err)
	_, err = io.Copy(out, in)
	e.must(errors.Join(err, in.Close(), out.Close()))
	return path
}

// wantNoChunks fails the test when the database has a chunk of a file.
func (e *env) wantNoChunks() {
	e.t.Helper()
	var n int
	e.must(storetest.OpenSQL(e.t, e.address).QueryRowContext(e.t.Context(), "SELECT count(*) FROM export_chunks").Scan(&n))
	if n != 0 {
		e.t.Errorf("%d chunks are left", n)
	}
}

// stored stores content as the file of a new export, as upload does, and ends the export.
func (e *env) stored(j *Jobs, content []byte) store.Export {
	e.t.Helper()
	ctx := e.t.Context()
	_, err := j.Create(ctx, e.scope, e.day(0), e.day(0), false, "Ana")
	e.must(err)
	claimed, err := e.store.ClaimExport(ctx, fiscal.Certification, j.holder, e.clock.Now(), e.clock.Now().Add(lease))
	e.must(err)
	e.must(os.MkdirAll(j.o.Dir, 0o700))
	e.must(os.WriteFile(j.path(claimed.ID), content, 0o600))
	claimed.Size, err = j.upload(ctx, claimed)
	e.must(err)
	claimed.State = store.ExportDone
	e.must(j.save(ctx, claimed, 0))
	return e.state(claimed.ID)
}

// Every node reads the file of an export, from every position, and holds one chunk of it.
func TestEveryNodeReadsAFile(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newEnv(t, address)
		j, other := e.jobs(), e.otherNode()
		for _, size := range []int{1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 100} {
			content := make([]byte, size)
			_, _ = rand.Read(content) // it never fails
			made := e.stored(j, content)
			if made.Size != int64(size) {
				t.Errorf("the size is %d, want %d", made.Size, size)
			}
			f, err := other.Open(t.Context(), made)
			e.must(err)
			if err := iotest.TestReader(f, content); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
			if _, err := f.Seek(-2, io.SeekStart); err == nil {
				t.Error("a negative position")
			}
			e.must(f.Close())
			e.must(j.Delete(t.Context(), made))
			e.must(other.purgeChunks(t.Context()))
			e.wantNoChunks()
		}
	})
}

// A node that has lost an export stores no further chunk of it.
func TestALostExportIsNotStored(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	j := e.jobs()
	made := e.stored(j, []byte("x"))
	e.must(os.WriteFile(j.path(made.ID), []byte("y"), 0o600))
	e.must(j.Delete(t.Context(), made))
	e.must(os.WriteFile(j.path(made.ID), []byte("y"), 0o600))
	if _, err := j.upload(t.Context(), made); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a deleted export is stored: %v", err)
	}
	e.must(j.purgeChunks(t.Context()))
	e.wantNoChunks()
}

// An export that the end of the process interrupts goes on with the next process at once;
// after a crash it goes on when the claim is over.
func TestAnExportGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	e.add(e.day(0), fiscal.Accepted, "Ana")
	first, second := e.jobs(), e.jobs()
	made, err := first.Create(t.Context(), e.scope, e.day(0), e.day(0), false, "Ana")
	e.must(err)
	// A crash: the claim stays.
	now := e.clock.Now()
	_, err = e.store.ClaimExport(t.Context(), fiscal.Certification, "crashed", now, now.Add(lease))
	e.must(err)
	if e.work(t.Context(), second) {
		t.Error("an export was taken from its holder")
	}
	e.clock.Advance(lease + time.Second)
	// A stop: the process gives the claim back.
	stopped, stop := context.WithCancel(t.Context())
	e.clock.Advance(time.Second)
	claimed, err := e.store.ClaimExport(stopped, fiscal.Certification, first.holder, e.clock.Now(), e.clock.Now().Add(lease))
	e.must(err)
	stop()
	if _, err := first.write(stopped, &claimed, func(error) {}); err == nil {
		t.Error("a stopped export was written")
	}
	e.must(first.save(t.Context(), claimed, 0))
	if !e.work(t.Context(), second) || e.state(made.ID).State != store.ExportDone {
		t.Errorf("the export is %+v", e.state(made.ID))
	}
	// Who has lost the claim stores nothing more.
	if err := first.save(t.Context(), claimed, lease); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a lost claim: %v", err)
	}
}

// A taxpayer has a bounded number of exports, and a span has an order.
func TestExportsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	j := e.jobs()
	if _, err := j.Create(t.Context(), e.scope, e.day(1), e.day(0), false, "Ana"); !errors.Is(err, ErrSpan) {
		t.Errorf("a span that ends before it begins: %v", err)
	}
	for range maxOpen {
		_, err := j.Create(t.Context(), e.scope, e.day(0), e.day(0), false, "Ana")
		e.must(err)
	}
	if _, err := j.Create(t.Context(), e.scope, e.day(0), e.day(0), false, "Ana"); !errors.Is(err, ErrTooMany) {
		t.Errorf("one export more: %v", err)
	}
	all, err := e.store.Exports(t.Context(), e.scope)
	e.must(err)
	e.must(j.Delete(t.Context(), all[0]))
	_, err = j.Create(t.Context(), e.scope, e.day(0), e.day(0), false, "Ana")
	e.must(err)
}

// An export that cannot be made says so, and leaves no folder.
func TestAFailedExportIsShown(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	j := e.jobs()
	made, err := j.Create(t.Context(), e.scope, e.day(0), e.day(0), false, "Ana")
	e.must(err)
	e.must(os.MkdirAll(j.path(made.ID)+partialEnding, 0o700))
	e.must(os.WriteFile(j.path(made.ID)+partialEnding+"/"+stateName, []byte("{"), 0o600))
	if !e.work(t.Context(), j) {
		t.Fatal("there was no export")
	}
	if got := e.state(made.ID); got.State != store.ExportFailed || got.Problem == "" {
		t.Errorf("the export is %+v", got)
	}
	if _, err := os.Stat(j.path(made.ID) + partialEnding); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a failed export: %v", err)
	}
}
