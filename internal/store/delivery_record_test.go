package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestDeliveriesAreRecordedTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		a, b := addEndpoint(t, s, sampleEndpoint(scope, "*")), addEndpoint(t, s, sampleEndpoint(scope, "*"))
		for range 3 {
			addEvent(t, s, sampleEvent(scope, "a", noon))
		}
		claimed := claimDue(t, s, noon, 9)
		if len(claimed) != 6 {
			t.Fatalf("claimed %d, want 6", len(claimed))
		}
		results := make([]store.DeliveryResult, len(claimed))
		for i, d := range claimed {
			if string(d.Body) != string(sampleEvent(scope, "a", noon).Body) {
				t.Errorf("the claim has the body %q", d.Body)
			}
			results[i] = store.DeliveryResult{Delivery: d, Outcome: store.DeliveryOutcome{State: store.DeliveryDelivered, RunAt: d.RunAt, Attempt: store.DeliveryAttempt{
				Scope: scope, ID: store.NewID(), EndpointID: d.EndpointID, EventID: d.EventID, Kind: d.Kind, Number: 1, At: noon, HTTPStatus: 200,
			}}}
		}
		// Another sender has taken one of them: nothing is recorded.
		lost := append([]store.DeliveryResult(nil), results...)
		lost[3].Lease = "another"
		if err := s.RecordDelivered(t.Context(), lost); !errors.Is(err, store.ErrLeaseLost) {
			t.Fatalf("with a lost lease: %v", err)
		}
		logged := func() (n int) {
			for _, e := range []store.Endpoint{a, b} {
				attempts, err := s.DeliveryLog(t.Context(), scope, e.ID, "", 100)
				if err != nil {
					t.Fatal(err)
				}
				n += len(attempts)
			}
			return n
		}
		if n := logged(); n != 0 {
			t.Errorf("%d attempts are logged after a lost lease", n)
		}
		if err := s.RecordDelivered(t.Context(), results); err != nil || logged() != 6 {
			t.Errorf("%d attempts are logged, want 6; %v", logged(), err)
		}
		if err := s.RecordDelivered(t.Context(), results); !errors.Is(err, store.ErrLeaseLost) || logged() != 6 {
			t.Errorf("recorded twice: %d attempts, %v", logged(), err)
		}
		if left := claimDue(t, s, noon.Add(time.Hour), 9); len(left) != 0 {
			t.Errorf("%d deliveries are sent again", len(left))
		}
	})
}
