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

// Whoever waits hears of what is written, here or on another node, and of what
// was written before it began to wait.
func TestWaitingForTheFeed(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		feed := NewFeed(o.store)
		other := storetest.Open(t, o.address, o.now)
		after := int64(0)
		for _, turn := range []struct {
			name  string
			write func(n store.Event)
		}{
			{"here", func(n store.Event) {
				o.must(o.store.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), n) }))
				feed.Wake(o.scope)
			}},
			{"on another node", func(n store.Event) {
				o.must(other.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), n) }))
			}},
		} {
			waits := make(chan error, 3)
			for range cap(waits) {
				go func() { waits <- feed.Wait(t.Context(), o.scope, after) }()
			}
			turn.write(store.Event{Scope: o.scope, ID: event.NewID(), Kind: "a", At: o.now(), Body: []byte("{}")})
			for range cap(waits) {
				if err := <-waits; err != nil {
					t.Errorf("%s: %v", turn.name, err)
				}
			}
			o.must(feed.Wait(t.Context(), o.scope, after)) // it is there already
			got, err := feed.Read(t.Context(), o.scope, after, 10)
			if err != nil || len(got) != 1 {
				t.Fatalf("%s: %v, %v", turn.name, got, err)
			}
			after = got[0].Number
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if err := feed.Wait(ctx, o.scope, after); !errors.Is(err, context.Canceled) {
				t.Errorf("when it ends: %v", err)
			}
		})
		feed.Wake(o.taxpayer()) // of another
		cancel()
		waiting.Wait()
	})
}
