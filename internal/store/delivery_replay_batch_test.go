package store_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addHistory stores n events of a taxpayer without deliveries, from noon on. Three of them
// have the same time. Every fourth one is of kind b, the others are of kind a.
func addHistory(t *testing.T, s *store.Store, scope store.Scope, n int) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return tx.Exec(ctx, `
			INSERT INTO events (environment, taxpayer_id, id, kind, document_id, revision, at, body)
			WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < $4)
			SELECT cast($1 AS text), cast($2 AS text), 'evt_' || cast(1000000 + i AS text),
				CASE WHEN i % 4 = 0 THEN 'b' ELSE 'a' END, '', 0, cast($3 AS bigint) + i / 3, $5 FROM numbers`,
			string(scope.Environment), scope.TaxpayerID, noon.UnixMicro(), n, []byte("{}"))
	})
}

// due counts the pending deliveries of an endpoint.
func due(t *testing.T, s *store.Store, e store.Endpoint) (n int64) {
	t.Helper()
	err := s.QueryRow(t.Context(), `SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1 AND state = 'pending'`, e.ID).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// startReplay returns the plan of a replay. It ends the test when the start has failed.
func startReplay(t *testing.T, plan store.ReplayPlan, err error) store.ReplayPlan {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// The answer to a replay of a long history counts at most 10,000 events, and changes no
// delivery.
func TestThePlanOfAReplayCountsAtMostTenThousandEvents(t *testing.T) {
	t.Parallel()
	const events = 13_600 // 10,200 of kind a
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "a"))
		addHistory(t, s, scope, events)
		now := noon.Add(time.Hour)
		plan, err := s.StartReplaySince(t.Context(), scope, e.ID, noon, now)
		if got := startReplay(t, plan, err); !got.AtLeast || got.Events < 7_000 || got.Events > 10_000 || due(t, s, e) != 0 {
			t.Errorf("since noon: %+v, with %d deliveries due", got, due(t, s, e))
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `
				INSERT INTO webhook_deliveries (endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt, run_at, lease, lease_until, created_at)
				SELECT $1, id, environment, taxpayer_id, kind, '', 0, 'failed', 1, at, '', 0, at FROM events WHERE kind = 'a'`, e.ID)
		})
		plan, err = s.StartReplayFailed(t.Context(), scope, e.ID, now)
		if got := startReplay(t, plan, err); got != (store.ReplayPlan{Events: 10_000, AtLeast: true}) || due(t, s, e) != 0 {
			t.Errorf("the failed deliveries: %+v, with %d deliveries due", got, due(t, s, e))
		}
	})
}

// The answer to a replay changes no delivery. Each transaction of the background work
// changes at most ReplayBatch of them. `make soak` runs it for 20,000 events.
func TestAReplayRunsInBoundedBatches(t *testing.T) {
	t.Parallel()
	events := sizeOf(t, "REPLAY_EVENTS", 5*store.ReplayBatch+40)
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "a"))
		addHistory(t, s, scope, events)
		wanted, now := int64(events*3/4), noon.Add(time.Hour)
		answered := func(what string, plan store.ReplayPlan, err error) {
			t.Helper()
			if got := startReplay(t, plan, err); !got.AtLeast && got.Events != wanted || due(t, s, e) != 0 {
				t.Errorf("%s: %+v, with %d deliveries due", what, got, due(t, s, e))
			}
		}
		check := func(what string, want int64) {
			t.Helper()
			before, total, ended := int64(0), int64(0), false
			for !ended {
				r := onlyReplay(t, s)
				done, err := s.RunReplayBatch(t.Context(), r, now)
				after := due(t, s, e)
				if total += done.Deliveries; err != nil || after-before != done.Deliveries || done.Deliveries > store.ReplayBatch || done.Total != total {
					t.Fatalf("%s: a transaction changed %d deliveries and reports %+v, %v", what, after-before, done, err)
				}
				before, ended = after, done.Ended
			}
			if total != want {
				t.Errorf("%s: %d deliveries, want %d", what, total, want)
			}
		}
		plan, err := s.StartReplaySince(t.Context(), scope, e.ID, noon, now)
		answered("since noon", plan, err)
		check("since noon", wanted)

		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `UPDATE webhook_deliveries SET state = 'failed' WHERE endpoint_id = $1`, e.ID)
		})
		plan, err = s.StartReplayFailed(t.Context(), scope, e.ID, now)
		answered("the failed deliveries", plan, err)
		check("the failed deliveries", wanted)
	})
}

// onlyReplay returns the replay of production that is not done.
func onlyReplay(t *testing.T, s *store.Store) store.Replay {
	t.Helper()
	replays, err := s.Replays(t.Context(), fiscal.Production)
	if err != nil || len(replays) != 1 {
		t.Fatalf("replays: %+v, %v; want one", replays, err)
	}
	return replays[0]
}

func TestAReplayAcceptsAnyMoment(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		addHistory(t, s, scope, 3)
		now := noon.Add(time.Hour)
		for _, tt := range []struct {
			name  string
			since time.Time
			want  int64
		}{
			{"the zero time", time.Time{}, 3},
			{"the year 0", time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), 3},
			{"earlier than the stored form can hold", time.Unix(math.MinInt64/2, 0), 3},
			{"the time of the events", noon, 3},
			{"after the events", noon.Add(time.Microsecond), 0},
			{"now", now, 0},
			{"the year 9999", time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), 0},
			{"later than the stored form can hold", time.Unix(math.MaxInt64/2, 0), 0},
		} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Exec(ctx, `DELETE FROM webhook_deliveries WHERE endpoint_id = $1`, e.ID)
			})
			plan, err := s.StartReplaySince(t.Context(), scope, e.ID, tt.since, now)
			runReplays(t, s, now)
			if got := due(t, s, e); err != nil || plan != (store.ReplayPlan{Events: tt.want}) || got != tt.want {
				t.Errorf("%s: %+v, %v; %d deliveries are due, want %d", tt.name, plan, err, got, tt.want)
			}
		}
	})
}

// An event that is pending is not doubled, and events after the request keep their own
// delivery.
func TestAReplayDoesNotDoubleADelivery(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		held := addEvent(t, s, sampleEvent(scope, "a", noon))
		claimed := claimDue(t, s, noon, 1)
		now := noon.Add(time.Second)
		plan, err := s.StartReplaySince(t.Context(), scope, e.ID, noon, now)
		if got := startReplay(t, plan, err); got.Events != 1 {
			t.Errorf("the plan: %+v", got)
		}
		later := addEvent(t, s, sampleEvent(scope, "a", now.Add(time.Second)))
		for _, d := range claimDue(t, s, now.Add(time.Second), 9) {
			end(t, s, d, now.Add(time.Second), nil)
		}
		runReplays(t, s, now.Add(2*time.Second))
		if got := storetest.DeliveriesOf(t, s, held); len(got) != 1 || got[0].Lease != claimed[0].Lease || got[0].State != store.DeliveryPending {
			t.Errorf("the delivery in progress: %+v", got)
		}
		if got := storetest.DeliveriesOf(t, s, later); len(got) != 1 || got[0].State != store.DeliveryDelivered {
			t.Errorf("the event after the request: %+v", got)
		}
		if got := claimDue(t, s, now.Add(3*time.Second), 9); len(got) != 0 {
			t.Errorf("claimed while another sender sends it: %+v", got)
		}
	})
}

// Several nodes together handle each event once, also when a batch is rolled back.
func TestNodesShareAReplay(t *testing.T) {
	t.Parallel()
	const events = 1_500
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s, other := storetest.Open(t, address, time.Now), storetest.Open(t, address, time.Now)
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		addHistory(t, s, scope, events)
		now := noon.Add(time.Hour)
		plan, err := s.StartReplaySince(t.Context(), scope, e.ID, noon, now)
		if got := startReplay(t, plan, err); got != (store.ReplayPlan{Events: events}) {
			t.Errorf("the plan: %+v", got)
		}
		r := onlyReplay(t, s)
		totals, ended := [4]int64{}, [4]int{}
		together(len(totals), func(i int) {
			node := []*store.Store{s, other}[i%2]
			for {
				done, err := node.RunReplayBatch(t.Context(), r, now)
				if err != nil {
					t.Error(err)
					return
				}
				totals[i] += done.Deliveries
				if done.Ended {
					ended[i]++
				}
				if left, err := node.Replays(t.Context(), fiscal.Production); err != nil || len(left) == 0 {
					return
				}
			}
		})
		if sum, ends := totals[0]+totals[1]+totals[2]+totals[3], ended[0]+ended[1]+ended[2]+ended[3]; sum != events || ends != 1 || due(t, s, e) != events {
			t.Errorf("the nodes made %v deliveries due and ended the replay %v times", totals, ended)
		}
	})
}

// A disabled endpoint interrupts its replay, and a deleted one ends it.
func TestAReplayWaitsForItsEndpoint(t *testing.T) {
	t.Parallel()
	const events = 500
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		addHistory(t, s, scope, events)
		now := noon.Add(time.Hour)
		_, err := s.StartReplaySince(t.Context(), scope, e.ID, noon, now)
		if err != nil {
			t.Fatal(err)
		}
		r := onlyReplay(t, s)
		run := func(want store.ReplayProgress) {
			t.Helper()
			if got, err := s.RunReplayBatch(t.Context(), r, now); err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		}
		run(store.ReplayProgress{Events: 200, Deliveries: 200, Total: 200})
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DisableEndpoint(ctx, scope, e.ID, "x", now) })
		run(store.ReplayProgress{})
		if got, err := s.Replays(t.Context(), fiscal.Production); err != nil || len(got) != 0 {
			t.Errorf("disabled: %+v, %v", got, err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.EnableEndpoint(ctx, scope, e.ID, now) })
		run(store.ReplayProgress{Events: 200, Deliveries: 200, Total: 400})
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteEndpoint(ctx, scope, e.ID, now) })
		r = onlyReplay(t, s)
		run(store.ReplayProgress{Total: 400, Ended: true})
		run(store.ReplayProgress{})
		if count(t, s, "replays") != 0 || due(t, s, e) != 0 {
			t.Errorf("%d replays and %d due deliveries of a deleted endpoint", count(t, s, "replays"), due(t, s, e))
		}
	})
}

// A second request while a replay runs extends it: an endpoint has one replay of a kind,
// however many requests there are.
func TestASecondRequestExtendsAReplay(t *testing.T) {
	t.Parallel()
	const events = 900 // three of them in a microsecond
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		addHistory(t, s, scope, events)
		now := noon.Add(time.Hour)
		start := func(since time.Time, want int64) {
			t.Helper()
			plan, err := s.StartReplaySince(t.Context(), scope, e.ID, since, now)
			if got := startReplay(t, plan, err); got.Events != want || count(t, s, "replays") != 1 {
				t.Errorf("the plan: %+v, %d replays", got, count(t, s, "replays"))
			}
		}
		start(noon.Add(100*time.Microsecond), 600)
		if _, err := s.RunReplayBatch(t.Context(), onlyReplay(t, s), now); err != nil {
			t.Fatal(err)
		}
		start(noon.Add(250*time.Microsecond), 150) // already part of it
		start(noon.Add(50*time.Microsecond), 750)  // goes back
		want := []store.ReplayProgress{
			{Events: 200, Deliveries: 200, Total: 400}, {Events: 200, Deliveries: 200, Total: 600}, {Events: 200, Deliveries: 200, Total: 800}, {Events: 150, Deliveries: 150, Total: 950},
			{Total: 950, Ended: true},
		}
		if diff := cmp.Diff(want, runReplays(t, s, now)); diff != "" || due(t, s, e) != 750 {
			t.Errorf("%d deliveries are due; batches (-want +got):\n%s", due(t, s, e), diff)
		}
	})
}
