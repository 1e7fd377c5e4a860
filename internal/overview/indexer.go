// Package overview is what the console shows of many documents at once: the search, the
// counts of the overview, and what needs a person. A background indexer keeps the index
// and the counts; creations pay nothing for them.
package overview

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

const (
	// indexBatch is how many documents one transaction indexes at most. On SQLite,
	// creations wait for it.
	indexBatch = 100
	// lookBatch is how many documents the walks that follow look at in one step.
	lookBatch = 500
	// behind is the distance at which the following walks stay behind the clock. No
	// transaction commits an id that is older.
	behind = 5 * time.Minute
	// rest is how many times longer than its last step the indexer rests, so that it
	// takes a small, fixed share of the database.
	rest      = 12
	shortRest = 5 * time.Millisecond
	pollEvery = 500 * time.Millisecond
	// leaseTime is how long a node indexes without a commit before another one may.
	leaseTime  = 30 * time.Second
	purgeEvery = time.Hour
	maxPurge   = 50_000
)

// IndexerOptions configure an Indexer. Store, Now and Log are required.
type IndexerOptions struct {
	Store *store.Store
	Now   func() time.Time
	Log   *slog.Logger
	// Hurry makes the indexer take no rests, for tests and benchmarks.
	Hurry bool
	// Batch is how many documents one transaction indexes at most; 0: 100. Benchmarks that
	// fill a database set a larger one.
	Batch int
}

// Indexer keeps the index of documents and their counts. One node of the database at a
// time indexes the documents of all environments.
type Indexer struct {
	o      IndexerOptions
	holder string
	limit  wake.LogLimit

	leasedUntil time.Time
	positions   map[store.Walk]string
}

// NewIndexer returns an indexer. It fails when an option is missing.
func NewIndexer(o IndexerOptions) (*Indexer, error) {
	if o.Store == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("overview: IndexerOptions are incomplete")
	}
	if o.Batch <= 0 {
		o.Batch = indexBatch
	}
	return &Indexer{o: o, holder: store.NewID()}, nil
}

// Run indexes until ctx ends.
func (x *Indexer) Run(ctx context.Context) {
	var nextPurge time.Time
	for ctx.Err() == nil {
		began := x.o.Now()
		more, err := x.Step(ctx)
		pause := pollEvery
		switch {
		case errors.Is(err, store.ErrIndexerReplaced):
			pause = leaseTime / 3 // another node indexes
		case err != nil && ctx.Err() == nil:
			if x.limit.Allow("index", x.o.Now()) {
				x.o.Log.Warn("Cannot index documents for the console. The indexer tries again within seconds.", "error", err.Error())
			}
			pause = 5 * time.Second
		case more && x.o.Hurry:
			pause = 0
		case more:
			pause = max(shortRest, min(rest*x.o.Now().Sub(began), 10*pollEvery))
		}
		if now := x.o.Now(); err == nil && !now.Before(nextPurge) {
			nextPurge = now.Add(purgeEvery)
			if _, err := x.o.Store.PurgeConsole(ctx, now, maxPurge); err != nil && ctx.Err() == nil {
				x.o.Log.Warn("Cannot delete old rows of the console. The deletion is repeated within an hour.", "error", err.Error())
			}
		}
		wake.Sleep(ctx, pause)
	}
}

// Step moves each walk once, by a bounded number of documents. more reports that a walk
// has not reached its end. The error is store.ErrIndexerReplaced while another node
// indexes.
func (x *Indexer) Step(ctx context.Context) (more bool, err error) {
	now := x.o.Now()
	if err := x.lease(ctx, now); err != nil {
		return false, err
	}
	end := store.FirstIDAt(now.Add(-behind))
	for _, w := range []struct {
		walk   store.Walk
		read   func(ctx context.Context, after, before string, look int) ([]store.ToIndex, string, error)
		before string
		look   int
	}{
		{store.WalkCreated, x.o.Store.CreatedAfter, lastID, x.o.Batch},
		{store.WalkChanged, x.o.Store.ChangedAfter, lastID, x.o.Batch},
		{store.WalkCreatedBefore, x.o.Store.CreatedAfter, end, max(lookBatch, x.o.Batch)},
		{store.WalkChangedBefore, x.o.Store.ChangedAfter, end, max(lookBatch, x.o.Batch)},
	} {
		found, last, err := w.read(ctx, x.positions[w.walk], w.before, w.look)
		if err != nil {
			return false, err
		}
		if last == "" {
			continue
		}
		more = true
		todo := entries(found)
		for len(todo) > x.o.Batch { // the walk moves on with the last of them
			if err := x.index(ctx, w.walk, x.positions[w.walk], todo[:x.o.Batch]); err != nil {
				return false, err
			}
			todo = todo[x.o.Batch:]
		}
		if err := x.index(ctx, w.walk, last, todo); err != nil {
			return false, err
		}
	}
	return more, nil
}

// index stores entries, and moves a walk to a position.
func (x *Indexer) index(ctx context.Context, walk store.Walk, position string, some []store.IndexEntry) error {
	until := x.o.Now().Add(leaseTime)
	if err := x.o.Store.Index(ctx, x.holder, walk, position, some, until); err != nil {
		x.leasedUntil = time.Time{} // the next step reads the positions again
		return err
	}
	x.leasedUntil, x.positions[walk] = until, position
	return nil
}

// lease takes or extends the lease of the indexer, unless it lasts long enough.
func (x *Indexer) lease(ctx context.Context, now time.Time) (err error) {
	if left := x.leasedUntil.Sub(now); left > leaseTime/2 && left <= leaseTime {
		return nil
	}
	until := now.Add(leaseTime)
	x.positions, err = x.o.Store.LeaseIndexer(ctx, x.holder, store.FirstIDAt(now.Add(-2*behind)), now, until)
	if x.leasedUntil = until; err != nil {
		x.leasedUntil = time.Time{}
	}
	return err
}

// lastID is above every id.
const lastID = "g"

// entries returns one entry for each document that the index lacks, or has otherwise.
func entries(found []store.ToIndex) []store.IndexEntry {
	of := map[string]int{}
	var all []store.IndexEntry
	for _, d := range found {
		if i, ok := of[d.DocumentID]; ok { // changed twice
			if all[i].VerdictAt.IsZero() {
				all[i].VerdictAt = d.VerdictAt
			}
			continue
		}
		of[d.DocumentID] = len(all)
		e := store.IndexEntry{
			Scope: d.Scope, DocumentID: d.DocumentID, Total: d.Total, TrackID: d.TrackID, Status: d.Status,
			CreatedAt: d.CreatedAt, VerdictAt: d.VerdictAt, Indexed: d.Indexed,
		}
		if d.Indexed == nil {
			e.Buyer = buyerOf(d.Scope, d.Request)
		}
		all = append(all, e)
	}
	// Rows in the order of the primary key are cheaper to insert.
	slices.SortFunc(all, func(a, b store.IndexEntry) int { return strings.Compare(a.DocumentID, b.DocumentID) })
	return slices.DeleteFunc(all, func(e store.IndexEntry) bool {
		return e.Indexed != nil && e.Indexed.Status == e.Status && e.Indexed.TrackID == e.TrackID &&
			(e.VerdictAt.IsZero() || !e.Indexed.VerdictAt.IsZero())
	})
}
