package notify

import (
	"context"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Feed reads the events of a taxpayer in order and waits for new ones. It is safe for
// concurrent use.
type Feed struct {
	store *store.Store

	mu      sync.Mutex
	waiting map[store.Scope]chan struct{}
}

// NewFeed returns the feed of a store.
func NewFeed(s *store.Store) *Feed {
	return &Feed{store: s, waiting: make(map[store.Scope]chan struct{})}
}

// Read returns the events of a taxpayer after the position after, in order.
func (f *Feed) Read(ctx context.Context, scope store.Scope, after int64, limit int) ([]store.Event, error) {
	return f.store.Feed(ctx, scope, after, limit)
}

// Wait returns nil when there are, or soon will be, events after the position after. It
// fails with the error of ctx when ctx ends first.
func (f *Feed) Wait(ctx context.Context, scope store.Scope, after int64) error {
	poll := time.NewTicker(wake.PollEvery) // for events that other nodes have written
	defer poll.Stop()
	for {
		woken := f.subscribe(scope) // before the query, so that no event is missed
		if found, err := f.store.HasEvents(ctx, scope, after); err != nil || found {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-woken:
		case <-poll.C:
		}
	}
}

// subscribe returns a channel that the next Wake for the taxpayer closes.
func (f *Feed) subscribe(scope store.Scope) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[scope] == nil {
		f.waiting[scope] = make(chan struct{})
	}
	return f.waiting[scope]
}

// Wake wakes the calls of Wait for a taxpayer. Call it after an event was committed.
func (f *Feed) Wake(scope store.Scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if woken := f.waiting[scope]; woken != nil {
		close(woken)
		delete(f.waiting, scope)
	}
}
