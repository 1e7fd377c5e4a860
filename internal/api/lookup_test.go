package api_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Requests with one key that come at the same time take one slot for its look-up,
// whatever happens to the first of them.
func TestOneLookUpServesManyRequests(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		limits := capacity.DefaultLimits(1<<30, 2)
		limits.StrangerSlots, limits.AddressSlots, limits.SlotPatience = 1, 1, time.Minute
		lookups := capacity.New(limits)
		narrow := e.withService(t, func(o *api.Options, _ *http.Server) { o.Capacity = lookups })
		busy, err := lookups.TakeSlot(t.Context(), capacity.Holder{Address: "127.0.0.1"})
		e.must(err)
		key := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		get := func(ctx context.Context, key string) (int, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, narrow.base+"/v1/taxpayers/"+e.taxpayer+"/invoices", nil)
			if err != nil {
				return 0, err
			}
			r.Header.Set("Authorization", "Bearer "+key)
			a, err := e.client.Do(r)
			if err != nil {
				return 0, err
			}
			return a.StatusCode, a.Body.Close()
		}

		// The first client has a wrong secret and leaves while it waits for the slot.
		leaving, leave := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		clients.Go(func() { _, _ = get(leaving, forgeKey(t, key)) })
		eventually(t, "the first request waits", func() bool { return narrow.waiting("stranger_slots") == 1 })
		for range 50 {
			clients.Go(func() {
				if status, err := get(t.Context(), key); status != http.StatusOK || err != nil {
					t.Errorf("a valid key: %d %v", status, err)
				}
			})
		}
		eventually(t, "all requests have arrived", func() bool { return narrow.inFlight() == 51 })
		if n := narrow.waiting("stranger_slots"); n != 1 {
			t.Errorf("%d look-ups of one key", n)
		}
		leave()
		busy.Release()
		clients.Wait()
	})
}

// waiting returns how many requests wait for a part of the capacity.
func (e *env) waiting(part string) int {
	for _, u := range e.capacity.Usage() {
		if u.Name == part {
			return u.Waiting
		}
	}
	return 0
}
