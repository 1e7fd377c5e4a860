package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Journal writes small entries that no answer waits for: that a request was repeated,
// that a credential was used. Entries share a transaction a few times a second. A crash
// may lose the last ones; no acknowledged invoice depends on them.
type Journal struct {
	store   *store.Store
	log     *slog.Logger
	entries chan entry
	writing chan struct{} // holds a value while a Flush is under way
}

type entry func(context.Context, *store.Tx) error

const (
	journalSize  = 1024
	journalBatch = 256
	journalPause = 200 * time.Millisecond
	journalTime  = 5 * time.Second // for a batch
)

func newJournal(s *store.Store, log *slog.Logger) *Journal {
	return &Journal{store: s, log: log, entries: make(chan entry, journalSize), writing: make(chan struct{}, 1)}
}

// Add queues an entry. It never blocks: when the queue is full, it drops the entry,
// because an answer is worth more.
func (j *Journal) Add(e func(context.Context, *store.Tx) error) {
	select {
	case j.entries <- e:
	default:
		j.log.Warn("The journal is full. An entry was dropped.")
	}
}

func (j *Journal) run(ctx context.Context) {
	// Entries that were taken out of the queue are written even when the service stops.
	work := context.WithoutCancel(ctx)
	tick := time.NewTicker(journalPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.Flush(work)
		case <-ctx.Done():
			j.Flush(work)
			return
		}
	}
}

// Flush writes the entries that are queued. It returns when all entries that were added
// before are written, also those that another Flush has taken out of the queue.
func (j *Journal) Flush(ctx context.Context) {
	j.writing <- struct{}{}
	defer func() { <-j.writing }()
	for {
		var batch []entry
		for len(batch) < journalBatch && len(j.entries) > 0 {
			batch = append(batch, <-j.entries)
		}
		if len(batch) == 0 {
			return
		}
		if err := j.write(ctx, batch); err != nil {
			j.log.Warn("Cannot write journal entries. They are dropped.", "entries", len(batch), "error", err.Error())
			return
		}
	}
}

func (j *Journal) write(ctx context.Context, batch []entry) error {
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	return j.store.Update(ctx, func(tx *store.Tx) error {
		for _, e := range batch {
			// What an entry speaks of may be gone; the rest stands.
			if err := e(ctx, tx); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}
