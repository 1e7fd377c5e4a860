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

// A replay that comes during an attempt that fails is sent at once. It waits neither for
// the schedule of that attempt, nor does it end with the last one.
func TestAReplayDuringAnAttemptIsSent(t *testing.T) {
	t.Parallel()
	now := noon.Add(time.Hour)
	for name, outcome := range map[string]*store.DeliveryOutcome{
		"the last attempt": {State: store.DeliveryFailed, RunAt: now, DisableAfter: time.Hour},
		"an attempt":       again(now.Add(24 * time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				scope := addLiveScope(t, s)
				e := addEndpoint(t, s, sampleEndpoint(scope, "a"))
				n := addEvent(t, s, sampleEvent(scope, "a", noon))
				claimed := claimDue(t, s, now, 9)
				if len(claimed) != 1 {
					t.Fatalf("claimed %+v", claimed)
				}
				if _, err := s.ReplayEvent(t.Context(), scope, e.ID, n.ID, now.Add(time.Second)); err != nil {
					t.Fatal(err)
				}
				later := now.Add(2 * time.Second)
				if got := claimDue(t, s, later, 9); len(got) != 0 {
					t.Errorf("sent twice at the same time: %+v", got)
				}
				end(t, s, claimed[0], now, outcome)
				if got := claimDue(t, s, later, 9); len(got) != 1 || got[0].EventID != n.ID || got[0].Attempt != 0 {
					t.Errorf("claimed %+v, want the event of the replay", got)
				}
			})
		})
	}
}

// An endpoint that was enabled again has received its later events, also when their
// deliveries are deleted by now: a replay of what it missed does not send them again.
func TestAReplayOfMissedEventsEndsWithTheOutage(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		outage := func(from time.Time) (missed store.Event) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DisableEndpoint(ctx, scope, e.ID, "x", from) })
			missed = addEvent(t, s, sampleEvent(scope, "a", from.Add(time.Hour)))
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.EnableEndpoint(ctx, scope, e.ID, from.Add(2*time.Hour))
			})
			addEvent(t, s, sampleEvent(scope, "a", from.Add(day)))
			if delivered := endAll(t, s, from.Add(day)); len(delivered) != 1 {
				t.Fatalf("delivered %v", delivered)
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error { // it changes nothing
				return tx.EnableEndpoint(ctx, scope, e.ID, from.Add(2*day))
			})
			if purged, err := s.Purge(t.Context(), from.Add(40*day), 100); err != nil || purged.Deliveries == 0 {
				t.Fatalf("purged %+v, %v", purged, err)
			}
			return missed
		}
		missed := outage(noon)
		now := noon.Add(41 * day)
		plan, err := s.StartReplayFailed(t.Context(), scope, e.ID, now)
		runReplays(t, s, now)
		if got := endAll(t, s, now); err != nil || plan != (store.ReplayPlan{Events: 1}) || !slices.Equal(got, []string{missed.ID}) {
			t.Errorf("%+v, %v; sent %v, want only %s", plan, err, got, missed.ID)
		}
		// A node of an earlier release knows only when an outage began.
		earlier := now.Add(time.Hour)
		setStatus := func(status string, missedSince any) {
			update(t, s, func(_ context.Context, tx *store.Tx) error {
				execute(t, tx, `UPDATE endpoints SET status = $1, missed_since = coalesce(missed_since, cast($2 AS bigint)) WHERE id = $3`, status, missedSince, e.ID)
				return nil
			})
		}
		setStatus("disabled", earlier.UnixMicro())
		missed = addEvent(t, s, sampleEvent(scope, "a", earlier.Add(time.Hour)))
		setStatus("enabled", nil)
		plan, err = s.StartReplayFailed(t.Context(), scope, e.ID, earlier.Add(2*time.Hour))
		runReplays(t, s, earlier.Add(2*time.Hour))
		if got := endAll(t, s, earlier.Add(2*time.Hour)); err != nil || plan != (store.ReplayPlan{Events: 1}) || !slices.Equal(got, []string{missed.ID}) {
			t.Errorf("after an outage of an earlier release: %+v, %v; sent %v, want only %s", plan, err, got, missed.ID)
		}
		// A replay since a moment before the outage sends what was missed, too.
		later := now.Add(day)
		outage(later)
		plan, err = s.StartReplaySince(t.Context(), scope, e.ID, later.Add(-time.Hour), later.Add(2*day))
		runReplays(t, s, later.Add(2*day))
		if got := endAll(t, s, later.Add(2*day)); err != nil || plan != (store.ReplayPlan{Events: 2}) || len(got) != 2 {
			t.Errorf("since a moment: %+v, %v; sent %v", plan, err, got)
		}
		if _, err := s.Purge(t.Context(), later.Add(80*day), 100); err != nil {
			t.Fatal(err)
		}
		if plan, err := s.StartReplayFailed(t.Context(), scope, e.ID, later.Add(80*day)); err != nil || plan != (store.ReplayPlan{}) {
			t.Errorf("after a replay since a moment: %+v, %v", plan, err)
		}
	})
}

// endAll delivers what is due, and returns the ids of the events.
func endAll(t *testing.T, s *store.Store, now time.Time) (ids []string) {
	t.Helper()
	for claimed := claimDue(t, s, now, 9); len(claimed) > 0; claimed = claimDue(t, s, now, 9) {
		for _, d := range claimed {
			ids = append(ids, d.EventID)
			end(t, s, d, now, nil)
		}
	}
	return ids
}
