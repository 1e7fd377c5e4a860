package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// runReplays works off all replays of production and returns what each batch did.
func runReplays(t *testing.T, s *store.Store, now time.Time) (batches []store.ReplayProgress) {
	t.Helper()
	for {
		replays, err := s.Replays(t.Context(), fiscal.Production)
		if err != nil {
			t.Fatal(err)
		}
		if len(replays) == 0 {
			return batches
		}
		for _, r := range replays {
			done, err := s.RunReplayBatch(t.Context(), r, now)
			if err != nil {
				t.Fatal(err)
			}
			batches = append(batches, done)
		}
	}
}

func TestAReplayMakesEventsDueAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "a"))
		old := addEvent(t, s, sampleEvent(scope, "a", noon))
		failed := addEvent(t, s, sampleEvent(scope, "a", noon.Add(time.Minute)))
		other := addEvent(t, s, sampleEvent(scope, "b", noon.Add(time.Minute)))
		now := noon.Add(time.Hour)
		for _, d := range claimDue(t, s, now, 9) {
			if d.EventID == failed.ID {
				end(t, s, d, now, &store.DeliveryOutcome{State: store.DeliveryFailed, RunAt: now, DisableAfter: time.Hour})
			} else {
				end(t, s, d, now, nil)
			}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DisableEndpoint(ctx, scope, e.ID, "x", now) })
		missed := addEvent(t, s, sampleEvent(scope, "a", now.Add(time.Minute)))
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.EnableEndpoint(ctx, scope, e.ID, now.Add(time.Hour))
		})
		later := now.Add(2 * time.Hour)
		if got := claimDue(t, s, later, 9); len(got) != 0 {
			t.Fatalf("without a replay: %+v", got)
		}
		// deliver delivers all due events, and checks that they are the wanted ones.
		deliver := func(what string, plan store.ReplayPlan, err error, want ...store.Event) {
			t.Helper()
			var ids, got []string
			runReplays(t, s, later)
			for _, w := range want {
				ids = append(ids, w.ID)
			}
			for claimed := claimDue(t, s, later, 9); len(claimed) > 0; claimed = claimDue(t, s, later, 9) {
				for _, d := range claimed {
					if d.Attempt != 0 {
						t.Errorf("%s: the delivery starts with attempt %d", what, d.Attempt)
					}
					got = append(got, d.EventID)
					end(t, s, d, later, nil)
				}
			}
			slices.Sort(got)
			slices.Sort(ids)
			if err != nil || plan != (store.ReplayPlan{Events: int64(len(want))}) || !slices.Equal(got, ids) {
				t.Errorf("%s: %+v, %v; delivered %v, want %v", what, plan, err, got, ids)
			}
		}
		plan, err := s.StartReplayFailed(t.Context(), scope, e.ID, later)
		deliver("the failed and the missed events", plan, err, failed, missed)
		plan, err = s.StartReplayFailed(t.Context(), scope, e.ID, later)
		deliver("a second replay of the failed events", plan, err)
		plan, err = s.ReplayEvent(t.Context(), scope, e.ID, old.ID, later)
		deliver("one event", plan, err, old)
		plan, err = s.ReplayEvent(t.Context(), scope, e.ID, other.ID, later)
		deliver("one event of a kind that the endpoint does not ask for", plan, err, other)
		plan, err = s.StartReplaySince(t.Context(), scope, e.ID, noon.Add(time.Minute), later)
		deliver("since a moment", plan, err, failed, missed)

		foreign := addLiveScope(t, s)
		for name, call := range map[string]func() (store.ReplayPlan, error){
			"another taxpayer's endpoint": func() (store.ReplayPlan, error) { return s.StartReplayFailed(t.Context(), foreign, e.ID, later) },
			"an unknown event":            func() (store.ReplayPlan, error) { return s.ReplayEvent(t.Context(), scope, e.ID, "evt_x", later) },
			"an unknown endpoint": func() (store.ReplayPlan, error) {
				return s.StartReplaySince(t.Context(), scope, store.NewID(), noon, later)
			},
		} {
			if plan, err := call(); !errors.Is(err, store.ErrNotFound) || plan != (store.ReplayPlan{}) {
				t.Errorf("%s: %+v, %v; want ErrNotFound", name, plan, err)
			}
		}
	})
}
