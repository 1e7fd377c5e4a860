package export

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

const (
	// lease is how long a node may be silent before another one takes over its export.
	lease = 2 * time.Minute
	// saveEvery is the shortest time between two saves of the progress.
	saveEvery = time.Second
	// lookEvery is how often a node looks for exports that another node or an earlier
	// process has left, and for chunks of deleted ones.
	lookEvery = 10 * time.Second
	minLook   = 100 * time.Millisecond // with a pace
	// purgeEvery is how often old exports are removed.
	purgeEvery = time.Hour

	maxOpen = 3  // exports of a taxpayer that wait or run
	maxKept = 20 // exports of a taxpayer, finished ones included
)

// ErrTooMany says that a taxpayer has as many exports as the service keeps.
var ErrTooMany = errors.New("export: the taxpayer has too many exports")

// ErrSpan says that the last day of a span is before the first one.
var ErrSpan = errors.New("export: the last day is before the first")

// JobsOptions configure Jobs. All fields but Pace are required.
type JobsOptions struct {
	Store       *store.Store
	Pipeline    *pipeline.Pipeline
	Environment fiscal.Environment
	Dir         string // for files that are not complete; it is made with the first export
	Now         func() time.Time
	Log         *slog.Logger
	Pace        wake.Pace // divides the time between two looks for exports
}

// Jobs makes exports in the background, one at a time on each node, and removes them
// when their time is over. The complete files are in the database, in chunks, so that
// every node can serve them.
type Jobs struct {
	o      JobsOptions
	holder string // of the claims of this process
	added  wake.Signal
	limit  wake.LogLimit
}

// NewJobs returns the jobs of a node. It fails when an option is missing.
func NewJobs(o JobsOptions) (*Jobs, error) {
	if o.Store == nil || o.Pipeline == nil || o.Environment == "" || o.Dir == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("export: JobsOptions are incomplete")
	}
	return &Jobs{o: o, holder: store.NewID(), added: wake.NewSignal()}, nil
}

// Create stores the request for an export, which a node makes soon. The error is ErrSpan
// or ErrTooMany when the export is refused.
func (j *Jobs) Create(ctx context.Context, scope store.Scope, from, to fiscal.Date, pdf bool, by string) (store.Export, error) {
	return j.CreateOnce(ctx, store.Form{}, scope, from, to, pdf, by)
}

// CreateOnce is Create for a form that a browser may send several times. The error is a
// *store.FormUsedError when the form has created an export before.
func (j *Jobs) CreateOnce(ctx context.Context, form store.Form, scope store.Scope, from, to fiscal.Date, pdf bool, by string) (store.Export, error) {
	if to.Before(from) {
		return store.Export{}, ErrSpan
	}
	now := j.o.Now().UTC().Truncate(time.Millisecond)
	e := store.Export{
		Scope: scope, ID: store.NewID(), From: from, To: to, Include: []string{"xml", "csv"}, State: store.ExportWaiting,
		CreatedBy: by, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(store.ExportKept),
	}
	if pdf {
		e.Include = append(e.Include, "pdf")
	}
	err := j.o.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.UseForm(ctx, scope, form, "export.create", e.ID, now); err != nil {
			return err
		}
		all, err := tx.Exports(ctx, scope)
		if err != nil {
			return err
		}
		open := 0
		for _, one := range all {
			if one.State == store.ExportWaiting || one.State == store.ExportRunning {
				open++
			}
		}
		if open >= maxOpen || len(all) >= maxKept {
			return ErrTooMany
		}
		if err := tx.CreateExport(ctx, e); err != nil {
			return err
		}
		return tx.Audit(ctx, store.AuditEntry{Scope: scope, Action: "export.create", Object: "export:" + e.ID, After: map[string]any{
			"from": from.String(), "to": to.String(), "include": strings.Join(e.Include, ","),
		}})
	})
	if err == nil {
		j.added.Notify()
	}
	return e, err
}

// Delete removes an export. A node deletes its file soon. An export that runs ends with the
// next save of its progress. The error is store.ErrNotFound when there is none.
func (j *Jobs) Delete(ctx context.Context, e store.Export) error {
	err := j.o.Store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Export(ctx, e.Scope, e.ID); err != nil {
			return err
		}
		if err := tx.DeleteExport(ctx, e.Scope, e.ID); err != nil {
			return err
		}
		return tx.Audit(ctx, store.AuditEntry{Scope: e.Scope, Action: "export.delete", Object: "export:" + e.ID, Before: map[string]any{
			"from": e.From.String(), "to": e.To.String(),
		}})
	})
	if err != nil {
		return err
	}
	j.added.Notify()
	return os.RemoveAll(j.path(e.ID))
}

// Open opens the file of an export that is done. The error is fs.ErrNotExist when the
// export is not done, or an earlier release has made its file on another node. Reads end
// with ctx.
func (j *Jobs) Open(ctx context.Context, e store.Export) (io.ReadSeekCloser, error) {
	switch {
	case e.State != store.ExportDone:
		return nil, fs.ErrNotExist
	case e.Size == 0:
		return os.Open(j.path(e.ID))
	}
	return &storedFile{ctx: ctx, store: j.o.Store, export: e, loaded: -1}, nil
}

func (j *Jobs) path(id string) string { return filepath.Join(j.o.Dir, id+".zip") }

// Run makes exports until ctx ends. An export that is interrupted goes on with the next
// Run, where it stopped.
func (j *Jobs) Run(ctx context.Context) {
	var purged time.Time
	for ctx.Err() == nil {
		if now := j.o.Now(); now.Sub(purged) >= purgeEvery {
			purged = now
			if err := j.Purge(ctx); err != nil && ctx.Err() == nil {
				j.o.Log.Warn("Cannot remove old exports. The next try is in an hour.", "error", err.Error())
			}
		}
		made, err := j.next(ctx)
		err = errors.Join(err, j.purgeChunks(ctx))
		if err == nil {
			j.limit.End("exports")
		} else if ctx.Err() == nil && j.limit.Allow("exports", j.o.Now()) {
			j.o.Log.Warn("Cannot continue with the exports. The next try is in 10 seconds.", "error", err.Error())
		}
		if !made || err != nil {
			j.added.Wait(ctx, j.o.Pace.Of(lookEvery, minLook))
		}
	}
}

// next makes the next export. It reports false when there is none.
func (j *Jobs) next(ctx context.Context) (made bool, err error) {
	now := j.o.Now()
	e, err := j.o.Store.ClaimExport(ctx, j.o.Environment, j.holder, now, now.Add(lease))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := atomicfile.MkdirAll(j.o.Dir, 0o700); err != nil {
		return true, err
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	manifest, err := j.write(working, &e, stop)
	var size int64
	if err == nil {
		size, err = j.upload(working, e)
	}
	uncancelled := context.WithoutCancel(ctx)
	cause := context.Cause(working)
	switch {
	case err == nil:
		e.State, e.Done, e.Total, e.File, e.Size = store.ExportDone, manifest.Documents, manifest.Documents, filepath.Base(j.path(e.ID)), size
		return true, errors.Join(j.save(uncancelled, e, 0), os.RemoveAll(j.path(e.ID)))
	case errors.Is(cause, store.ErrLeaseLost), errors.Is(err, store.ErrLeaseLost):
		// Another node has the export, or it was deleted.
		return true, errors.Join(os.RemoveAll(j.path(e.ID)), os.RemoveAll(j.path(e.ID)+partialEnding))
	case ctx.Err() != nil || errors.Is(err, store.ErrUnavailable):
		// Without a claim the next process goes on at once.
		return true, errors.Join(err, j.save(uncancelled, e, 0))
	}
	j.o.Log.Error("An export failed. The person who asked for it sees it and may start it again.",
		"export", e.ID, "taxpayer", e.TaxpayerID, "error", err.Error())
	e.State, e.Problem = store.ExportFailed, err.Error()
	if errors.Is(err, errTooLarge) {
		e.Problem = TooLarge
	}
	return true, errors.Join(j.save(uncancelled, e, 0), os.RemoveAll(j.path(e.ID)), os.RemoveAll(j.path(e.ID)+partialEnding))
}

// write writes the file of an export and saves its progress. It calls stop when the
// claim is lost.
func (j *Jobs) write(ctx context.Context, e *store.Export, stop context.CancelCauseFunc) (Manifest, error) {
	path := j.path(e.ID)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, err // the file of a process that ended before it saved
	}
	var saved time.Time
	return Write(ctx, path, Options{
		Store: j.o.Store, Pipeline: j.o.Pipeline, Scope: e.Scope, From: e.From, To: e.To, Now: j.o.Now,
		PDF: slices.Contains(e.Include, "pdf"),
		Progress: func(done, total int64) {
			if now := j.o.Now(); now.Sub(saved) >= saveEvery {
				saved, e.Done, e.Total = now, done, total
				if err := j.save(ctx, *e, lease); errors.Is(err, store.ErrLeaseLost) {
					stop(err)
				}
			}
		},
	})
}

func (j *Jobs) save(ctx context.Context, e store.Export, held time.Duration) error {
	now := j.o.Now()
	return j.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.SaveExport(ctx, e, j.holder, now, now.Add(held)) })
}

// Purge removes exports whose time is over. It also removes old files of this node whose
// rows another node has deleted.
func (j *Jobs) Purge(ctx context.Context) error {
	now := j.o.Now()
	for {
		expired, err := j.o.Store.ExpiredExports(ctx, now)
		if err != nil {
			return err
		}
		for _, e := range expired {
			if err := errors.Join(os.RemoveAll(j.path(e.ID)), os.RemoveAll(j.path(e.ID)+partialEnding)); err != nil {
				return err
			}
			if err := j.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.DeleteExport(ctx, e.Scope, e.ID) }); err != nil {
				return err
			}
		}
		if len(expired) == 0 {
			return errors.Join(j.purgeChunks(ctx), j.purgeFiles(now))
		}
	}
}

// purgeChunks deletes the chunks of exports that were deleted.
func (j *Jobs) purgeChunks(ctx context.Context) error {
	for {
		deleted, err := j.o.Store.DeletedExports(ctx)
		if err != nil || len(deleted) == 0 {
			return err
		}
		for _, e := range deleted {
			if err := j.o.Store.DeleteExportChunks(ctx, e); err != nil {
				return err
			}
		}
	}
}

func (j *Jobs) purgeFiles(now time.Time) error {
	entries, err := os.ReadDir(j.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < store.ExportKept {
			continue // a file that is gone needs no removal
		}
		if err := os.RemoveAll(filepath.Join(j.o.Dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
