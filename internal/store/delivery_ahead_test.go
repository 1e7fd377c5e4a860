package store_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// claimAhead claims the due deliveries of production for a sender, and returns those that
// it may start at once and those that wait.
func claimAhead(t *testing.T, s *store.Store, sender string, ahead int) (now, later []store.Delivery) {
	t.Helper()
	got, err := s.ClaimDeliveries(t.Context(), store.DeliveryClaim{
		Environment: fiscal.Production, Lease: sender + store.NewID(), Now: noon, Until: noon.Add(time.Minute), Limit: 9, Failing: 9, Ahead: ahead, Sender: sender,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got {
		if d.Endpoint == nil || d.Endpoint.ID != d.EndpointID || d.Endpoint.Scope != d.Scope || len(later) > 0 && !d.Ahead {
			t.Fatalf("claimed %+v of the endpoint %+v", d, d.Endpoint)
		}
		if d.Ahead {
			later = append(later, d)
		} else {
			now = append(now, d)
		}
	}
	return now, later
}

// A sender that is alone holds more deliveries than are in progress. Together with another
// sender it holds no more than may be in progress.
func TestOnlyASenderAloneClaimsAhead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		for range 200 {
			addEvent(t, s, sampleEvent(e.Scope, "a", noon))
		}
		want := func(sender string, ahead, now, later int) []store.Delivery {
			t.Helper()
			a, b := claimAhead(t, s, sender, ahead)
			if len(a) != now || len(b) != later {
				t.Fatalf("sender %s claimed %d and %d ahead, want %d and %d", sender, len(a), len(b), now, later)
			}
			return append(a, b...)
		}
		endAll := func(some []store.Delivery) {
			for _, d := range some {
				end(t, s, d, noon, nil)
			}
		}
		first := want("a", 20, 4, 20)
		first = append(first, want("a", 20, 0, 20)...) // it held less than half of what it may hold
		want("a", 20, 0, 0)
		want("b", 20, 0, 0) // the other sender is alone
		endAll(first[:41])
		second := want("b", 20, 1, 0)
		want("a", 20, 0, 0)
		endAll(first[41:42])
		first = append(first, want("a", 10, 1, 0)...)
		endAll(second)
		first = append(first, want("a", 100, 1, 60)...)
		endAll(first[42:])

		third := want("b", 10, 4, 10)
		stranger := third[0]
		stranger.Lease = "another sender's"
		if err := s.ReleaseDeliveries(t.Context(), append([]store.Delivery{stranger}, third[1:13]...)); err != nil {
			t.Fatal(err)
		}
		want("a", 10, 2, 0) // b still holds the first and the last
		end(t, s, third[0], noon, nil)
		end(t, s, third[13], noon, again(noon.Add(time.Hour)))
		want("a", 10, 2, 0) // the last attempt failed
	})
}

// The deliveries that a claim takes ahead are divided among the endpoints.
func TestEndpointsShareWhatIsClaimedAhead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		for range 2 {
			addEndpoint(t, s, sampleEndpoint(scope, "*"))
		}
		for i := range 20 {
			n := sampleEvent(scope, "a", noon)
			n.DocumentID, n.Revision = []string{"", "x"}[i%2], int64(i)
			addEvent(t, s, n)
		}
		now, later := claimAhead(t, s, "a", 10)
		count, ofDocument := map[string]int{}, map[string]int{}
		for _, d := range append(now, later...) {
			count[d.EndpointID]++
			if d.DocumentID != "" {
				ofDocument[d.EndpointID]++
			}
		}
		for id, n := range count {
			if n != 9 || ofDocument[id] > 1 {
				t.Errorf("%d deliveries to %s, %d of them of one document", n, id, ofDocument[id])
			}
		}
		if len(count) != 2 || len(now) != 8 {
			t.Errorf("%d deliveries start now, to %d endpoints", len(now), len(count))
		}
	})
}
