package notify

import (
	"context"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Feed reads what taxpayers are told, in order, and waits for more. Use it by
// pointer, from as many goroutines as needed.
type Feed struct {
	store *store.Store

	mu      sync.Mutex
	waiting map[store.Scope]chan struct{}
}

// NewFeed makes a feed.
func NewFeed(s *store.Store) *Feed {
	return &Feed{store: s, waiting: make(map[store.Scope]chan struct{})}
}

// Read returns the notices of a taxpayer behind a place, in order.
func (f *Feed) Read(ctx context.Context, scope store.Scope, after int64, limit int) ([]store.Event, error) {
	return f.store.Feed(ctx, scope, after, limit)
}

// Wait returns once there may be something behind a place, and with the error of
// the context when that ends first.
func (f *Feed) Wait(ctx context.Context, scope store.Scope, after int64) error {
	poll := time.NewTicker(wake.PollEvery) // for what other nodes have written
	defer poll.Stop()
	for {
		told := f.listen(scope) // before looking: what comes in between is told
		if news, err := f.store.HasEvents(ctx, scope, after); err != nil || news {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-told:
		case <-poll.C:
		}
	}
}

func (f *Feed) listen(scope store.Scope) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[scope] == nil {
		f.waiting[scope] = make(chan struct{})
	}
	return f.waiting[scope]
}

// Wake tells those who wait that a taxpayer has been told something.
func (f *Feed) Wake(scope store.Scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if told := f.waiting[scope]; told != nil {
		close(told)
		delete(f.waiting, scope)
	}
}
