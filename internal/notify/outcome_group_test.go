package notify

import (
	"errors"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Outcomes that wait for one another are recorded each once. A delivery that another
// sender has taken fails alone.
func TestOutcomesShareCommits(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hooks := []store.Endpoint{}
		for range 4 {
			hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
			hooks = append(hooks, hook)
		}
		for range 4 {
			e.addEvent(e.scope, "fiscal_document.accepted")
		}
		claimed, err := e.newSender().claim(t.Context(), 0)
		e.must(err)
		if len(claimed) != 16 {
			t.Fatalf("claimed %d deliveries, want 16", len(claimed))
		}
		claimed[7].Lease = "another sender's"
		group := newOutcomeGroup(e.store)
		results := make([]error, len(claimed))
		var all sync.WaitGroup
		for i, d := range claimed {
			all.Go(func() {
				o := store.DeliveryOutcome{State: store.DeliveryDelivered, RunAt: d.RunAt, Attempt: store.DeliveryAttempt{
					Scope: d.Scope, ID: store.NewID(), EndpointID: d.EndpointID, EventID: d.EventID, Kind: d.Kind, Number: 1, At: e.now(), HTTPStatus: 200,
				}}
				_, results[i] = group.record(t.Context(), d, o)
			})
		}
		all.Wait()
		logged := 0
		for _, hook := range hooks {
			logged += len(e.log(hook))
		}
		for i, err := range results {
			if lost := errors.Is(err, store.ErrLeaseLost); lost != (i == 7) || !lost && err != nil {
				t.Errorf("delivery %d: %v", i, err)
			}
		}
		if logged != 15 || group.group.Waiting() != 0 {
			t.Errorf("%d attempts are logged, want 15; %d outcomes wait", logged, group.group.Waiting())
		}
	})
}
