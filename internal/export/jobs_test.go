package export

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
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
		if _, err := j.Open(made); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an export that waits can be opened: %v", err)
		}
		if !e.work(t.Context(), j) || e.work(t.Context(), j) {
			t.Error("there was not exactly one export to make")
		}
		got := e.state(made.ID)
		if got.State != store.ExportDone || got.Done != 1 || got.Total != 1 || got.CreatedBy != "Ana Pérez" {
			t.Fatalf("the export is %+v", got)
		}
		f, err := j.Open(got)
		e.must(err)
		e.must(f.Close())
		if r := e.verify(j.path(made.ID)); len(r.Problems) > 0 {
			t.Errorf("Verify reports %v", r.Problems)
		}
		e.must(j.Purge(t.Context()))
		if _, err := j.Open(got); err != nil {
			t.Errorf("a new export was removed: %v", err)
		}
		e.clock.Advance(store.ExportKept)
		e.must(j.Purge(t.Context()))
		if _, err := e.store.Export(t.Context(), e.scope, made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the row of an old export: %v", err)
		}
		if _, err := os.Stat(j.path(made.ID)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file of an old export: %v", err)
		}
	})
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
