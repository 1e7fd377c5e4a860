package notify

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Wait returns for events of this node and of other nodes, and for events that were
// written before the call.
func TestWaitReturnsWhenThereIsAnEvent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		feed := NewFeed(e.store)
		other := storetest.Open(t, e.address, e.now)
		after := int64(0)
		for _, node := range []struct {
			name  string
			write func(n store.Event)
		}{
			{"here", func(n store.Event) {
				e.must(e.store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), n) }))
				feed.Wake(e.scope)
			}},
			{"on another node", func(n store.Event) {
				e.must(other.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), n) }))
			}},
		} {
			waits := make(chan error, 3)
			for range cap(waits) {
				go func() { waits <- feed.Wait(t.Context(), e.scope, after) }()
			}
			node.write(store.Event{Scope: e.scope, ID: event.NewID(), Kind: "a", At: e.now(), Body: []byte("{}")})
			for range cap(waits) {
				if err := <-waits; err != nil {
					t.Errorf("%s: %v", node.name, err)
				}
			}
			e.must(feed.Wait(t.Context(), e.scope, after)) // the event exists already
			got, err := feed.Read(t.Context(), e.scope, after, 10)
			if err != nil || len(got) != 1 {
				t.Fatalf("%s: %v, %v", node.name, got, err)
			}
			after = got[0].Number
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if err := feed.Wait(ctx, e.scope, after); !errors.Is(err, context.Canceled) {
				t.Errorf("when the context ends: %v, want context.Canceled", err)
			}
		})
		feed.Wake(e.taxpayer()) // another taxpayer
		cancel()
		waiting.Wait()
	})
}
