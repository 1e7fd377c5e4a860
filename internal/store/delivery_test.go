package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// claimDue claims the due deliveries of production for a minute.
func claimDue(t *testing.T, s *store.Store, now time.Time, limit int) []store.Delivery {
	t.Helper()
	got, err := s.ClaimDeliveries(t.Context(), store.DeliveryClaim{
		Environment: fiscal.Production, Lease: store.NewID(), Now: now, Until: now.Add(time.Minute), Limit: limit, Failing: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// end records the result of an attempt. A nil failure is a success.
func end(t *testing.T, s *store.Store, d store.Delivery, at time.Time, failure *store.DeliveryOutcome) bool {
	t.Helper()
	o := store.DeliveryOutcome{State: store.DeliveryDelivered, RunAt: d.RunAt}
	if failure != nil {
		o = *failure
	}
	o.Attempt = store.DeliveryAttempt{Scope: d.Scope, ID: store.NewID(), EndpointID: d.EndpointID, EventID: d.EventID, Kind: d.Kind, Number: d.Attempt + 1, At: at, NextAt: o.RunAt}
	if o.Disabled.ID == "" {
		o.Disabled = sampleEvent(d.Scope, "webhook_endpoint.disabled", at)
	}
	disabled, err := s.RecordDelivery(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return disabled
}

func again(at time.Time) *store.DeliveryOutcome {
	return &store.DeliveryOutcome{State: store.DeliveryPending, RunAt: at, DisableAfter: 5 * 24 * time.Hour}
}

func TestAnEventGoesToTheEndpointsThatAskForIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		all, some := addEndpoint(t, s, sampleEndpoint(scope, "*")), addEndpoint(t, s, sampleEndpoint(scope, "x.other", "x.accepted"))
		addEndpoint(t, s, sampleEndpoint(scope, "x.accepted_conditional"))
		off := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		gone := addEndpoint(t, s, sampleEndpoint(scope, "*"))
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.DisableEndpoint(ctx, scope, off.ID, "x", noon), tx.DeleteEndpoint(ctx, scope, gone.ID, noon))
		})
		addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		addEndpoint(t, s, sampleEndpoint(store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}, "*"))
		n := sampleEvent(scope, "x.accepted", noon)
		n.DocumentID, n.Revision = store.NewID(), 3
		addEvent(t, s, n)
		want := []store.Delivery{{
			Scope: scope, EndpointID: all.ID, EventID: n.ID, Kind: n.Kind, DocumentID: n.DocumentID, Revision: 3,
			State: store.DeliveryPending, RunAt: noon, LeaseUntil: time.Unix(0, 0).UTC(), CreatedAt: noon,
		}}
		want = append(want, want[0])
		want[1].EndpointID = some.ID
		if diff := cmp.Diff(want, storetest.DeliveriesOf(t, s, n)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestADeliveryIsHeldByOneSender(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		addEvent(t, s, sampleEvent(e.Scope, "a", noon))
		if got := claimDue(t, s, noon.Add(-time.Microsecond), 9); len(got) != 0 {
			t.Errorf("claimed too early: %+v", got)
		}
		next, err := s.NextDelivery(t.Context(), fiscal.Production, noon.Add(-time.Second))
		if err != nil || !next.Equal(noon) {
			t.Errorf("next at %v, %v", next, err)
		}
		if _, err := s.NextDelivery(t.Context(), fiscal.Certification, noon.Add(-time.Second)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("next delivery of another environment: %v", err)
		}
		first := claimDue(t, s, noon, 9)
		if len(first) != 1 || first[0].LeaseUntil != noon.Add(time.Minute) || len(claimDue(t, s, noon, 9)) != 0 {
			t.Fatalf("claimed %+v; want one delivery, and none for a second sender", first)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.HoldDelivery(ctx, first[0], noon.Add(2*time.Minute))
		})
		if got := claimDue(t, s, noon.Add(time.Minute), 9); len(got) != 0 {
			t.Errorf("claimed under a lease: %+v", got)
		}
		second := claimDue(t, s, noon.Add(2*time.Minute), 9)
		if len(second) != 1 {
			t.Fatal("not claimed after the lease expired")
		}
		_, err = s.RecordDelivery(t.Context(), first[0], store.DeliveryOutcome{State: store.DeliveryDelivered})
		if !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("recorded after the lease was lost: %v, want ErrLeaseLost", err)
		}
		for _, fn := range []func(*store.Tx) error{
			func(tx *store.Tx) error { return tx.HoldDelivery(t.Context(), first[0], noon) },
			func(tx *store.Tx) error { return tx.ReleaseDelivery(t.Context(), first[0], noon) },
		} {
			if err := s.Update(t.Context(), fn); !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("after the lease was lost: %v, want ErrLeaseLost", err)
			}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.ReleaseDelivery(ctx, second[0], noon.Add(time.Hour))
		})
		if len(claimDue(t, s, noon.Add(time.Hour-time.Second), 9)) != 0 {
			t.Error("claimed before the release time")
		}
		third := claimDue(t, s, noon.Add(time.Hour), 9)
		if len(third) != 1 || third[0].Attempt != 0 {
			t.Fatalf("released: %+v", third)
		}
		end(t, s, third[0], noon.Add(time.Hour), nil)
		log, err := s.DeliveryLog(t.Context(), e.Scope, e.ID, "", 10)
		if err != nil || len(log) != 1 || log[0].Number != 1 {
			t.Errorf("the log: %+v, %v", log, err)
		}
		if len(claimDue(t, s, noon.Add(48*time.Hour), 9)) != 0 {
			t.Error("claimed after it was delivered")
		}
	})
}

// An endpoint gets the events of a document one at a time, in the order of the
// revisions. A failed delivery does not block the later ones.
// A sender took a lease while the clock was a day ahead, and died. After the clock is
// correct again, another sender gets the delivery, and the endpoint is not at rest.
func TestADeliveryLeaseFromAClockThatWasAheadHasExpired(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		for range store.MaxConcurrency {
			addEvent(t, s, sampleEvent(e.Scope, "a", noon))
		}
		ahead := noon.Add(24 * time.Hour)
		if got := claimDue(t, s, ahead, 10); len(got) != store.MaxConcurrency {
			t.Fatalf("claimed %d, want %d", len(got), store.MaxConcurrency)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `UPDATE endpoints SET failures = $1, rest_until = $2`, store.FailureThreshold, ahead.UnixMicro())
		})
		if got := claimDue(t, s, noon, 10); len(got) != 1 {
			t.Errorf("claimed %d after the clock was corrected, want 1 for an endpoint that fails", len(got))
		}
		if got := claimDue(t, s, noon, 10); len(got) != 0 {
			t.Errorf("claimed %d more while one is in progress", len(got))
		}
	})
}

func TestEventsOfADocumentGoInOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		document := store.NewID()
		for _, revision := range []int64{4, 2, 3} {
			n := sampleEvent(e.Scope, "a", noon)
			n.DocumentID, n.Revision = document, revision
			addEvent(t, s, n)
		}
		addEvent(t, s, sampleEvent(e.Scope, "b", noon.Add(time.Second)))
		now := noon.Add(time.Minute)
		for _, want := range []struct {
			revisions []int64
			failure   *store.DeliveryOutcome
		}{{[]int64{2, 0}, again(noon.Add(time.Hour))}, {[]int64{3}, nil}, {[]int64{4}, nil}, {nil, nil}} {
			got := claimDue(t, s, now, 9)
			var revisions []int64
			for _, d := range got {
				revisions = append(revisions, d.Revision)
				end(t, s, d, now, want.failure)
			}
			if !slices.Equal(revisions, want.revisions) {
				t.Errorf("claimed %v, want %v", revisions, want.revisions)
			}
		}
		if got := claimDue(t, s, noon.Add(time.Hour), 9); len(got) != 2 || got[0].Revision != 0 && got[0].Revision != 2 || got[0].Attempt != 1 {
			t.Errorf("when they are due again: %+v", got)
		}
	})
}

// The backlog of one endpoint does not delay another, and no endpoint gets more than its
// concurrency.
func TestClaimsAreFair(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		busy, quiet := addLiveScope(t, s), addLiveScope(t, s)
		addEndpoint(t, s, sampleEndpoint(busy, "*"))
		addEndpoint(t, s, sampleEndpoint(busy, "*"))
		small := addEndpoint(t, s, sampleEndpoint(quiet, "*"))
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			for i := range 200 {
				if err := tx.AddEvent(ctx, sampleEvent(busy, "a", noon.Add(time.Duration(i)*time.Millisecond))); err != nil {
					return err
				}
			}
			return nil
		})
		addEvent(t, s, sampleEvent(quiet, "a", noon.Add(time.Minute)))
		addEvent(t, s, sampleEvent(quiet, "a", noon.Add(time.Minute)))
		got := claimDue(t, s, noon.Add(time.Hour), 4)
		per := map[string]int{}
		for _, d := range got {
			per[d.EndpointID]++
		}
		if len(got) != 4 || per[small.ID] != 2 || len(per) != 3 {
			t.Errorf("four deliveries went to %v; want two for %s and one for each other endpoint", per, small.ID)
		}
		rest := claimDue(t, s, noon.Add(time.Hour), 100)
		if len(rest) != 6 {
			t.Errorf("%d more were claimed, want up to four for each busy endpoint", len(rest))
		}
	})
}

// In random runs no endpoint gets more than its concurrency, no delivery is claimed
// twice, and all deliveries end.
func TestRandomClaimsKeepTheLimits(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		rounds := 0
		rapid.Check(t, func(r *rapid.T) {
			if rounds++; rounds > 6 {
				return // more rounds on a real database take too long
			}
			// Each round ends all of its deliveries.
			tenants := rapid.IntRange(1, 3).Draw(r, "taxpayers")
			want := map[string]int{}
			for range tenants {
				scope := addLiveScope(t, s)
				endpoints := rapid.IntRange(1, 3).Draw(r, "endpoints")
				for range endpoints {
					e := addEndpoint(t, s, sampleEndpoint(scope, "*"))
					want[e.ID] = 0
				}
				events := rapid.IntRange(0, 12).Draw(r, "events")
				for i := range events {
					n := sampleEvent(scope, "a", noon)
					n.DocumentID, n.Revision = fmt.Sprint(i%3, scope.TaxpayerID), int64(i)
					addEvent(t, s, n)
				}
			}
			now, held := noon, map[string]store.Delivery{}
			left := 0
			if err := s.QueryRow(t.Context(), `SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'`).Scan(&left); err != nil {
				t.Fatal(err)
			}
			for left > 0 {
				limit := rapid.IntRange(1, 8).Draw(r, "limit")
				got := claimDue(t, s, now, limit)
				if len(got) > limit || len(got) == 0 && len(held) == 0 {
					r.Fatalf("claimed %d with limit %d, while %d are pending", len(got), limit, left)
				}
				under, documents := map[string]int64{}, map[string]bool{}
				for _, d := range got {
					if _, twice := held[d.EndpointID+d.EventID]; twice {
						r.Fatal("a delivery was claimed twice")
					}
					held[d.EndpointID+d.EventID] = d
				}
				for _, d := range held {
					under[d.EndpointID]++
					if documents[d.EndpointID+d.DocumentID] {
						r.Fatal("two events of a document are in progress to one endpoint")
					}
					documents[d.EndpointID+d.DocumentID] = true
				}
				for id, n := range under {
					if n > store.MaxConcurrency {
						r.Fatalf("%d deliveries are in progress to %s", n, id)
					}
				}
				for key, d := range held {
					if rapid.Bool().Draw(r, "ends") {
						end(t, s, d, now, nil)
						delete(held, key)
						left--
					}
				}
				now = now.Add(time.Second)
			}
		})
	})
}

// Two nodes that claim at the same time do not exceed the concurrency of an endpoint.
func TestNodesThatClaimTogetherKeepTheLimit(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		nodes := []*store.Store{storetest.Open(t, address, time.Now), storetest.Open(t, address, time.Now)}
		e := addEndpoint(t, nodes[0], sampleEndpoint(addLiveScope(t, nodes[0]), "*"))
		for range 20 {
			addEvent(t, nodes[0], sampleEvent(e.Scope, "a", noon))
		}
		var mu sync.Mutex
		seen := map[string]int{}
		together(8, func(i int) {
			got, err := nodes[i%2].ClaimDeliveries(t.Context(), store.DeliveryClaim{
				Environment: fiscal.Production, Lease: store.NewID(), Now: noon, Until: noon.Add(time.Minute), Limit: 3,
			})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, d := range got {
				seen[d.EventID]++
			}
		})
		for len(seen) < store.MaxConcurrency { // a node skips an endpoint that another node has locked
			got := claimDue(t, nodes[0], noon, 3)
			if len(got) == 0 {
				break
			}
			for _, d := range got {
				seen[d.EventID]++
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%s was claimed %d times", id, n)
			}
		}
		if len(seen) != store.MaxConcurrency {
			t.Errorf("%d deliveries are in progress, want %d", len(seen), store.MaxConcurrency)
		}
	})
}

// A busy endpoint gets fewer deliveries at a time. An endpoint that has failed often gets
// one delivery, then rests. A success ends this.
func TestAnEndpointThatFailsGetsLess(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		for range 30 {
			addEvent(t, s, sampleEvent(e.Scope, "a", noon))
		}
		now := noon
		fail := func(d store.Delivery, busy bool) {
			o := again(now.Add(time.Hour))
			o.Busy, o.RestUntil = busy, now.Add(5*time.Second)
			end(t, s, d, now, o)
		}
		for _, want := range []int{4, 2, 1, 1} {
			got := claimDue(t, s, now, 9)
			if len(got) != want {
				t.Fatalf("%d deliveries in progress, want %d", len(got), want)
			}
			fail(got[0], true)
			for _, d := range got[1:] {
				end(t, s, d, now, nil)
				if failures := readEndpoint(t, s, e).Failures; failures != 0 {
					t.Fatalf("%d failures after a success", failures)
				}
			}
			// The successes raised the concurrency; lower it again for the next step.
			for readEndpoint(t, s, e).Concurrency > int64(max(want/2, 1)) {
				fail(claimDue(t, s, now, 1)[0], true)
			}
		}
		for readEndpoint(t, s, e).Failures < store.FailureThreshold {
			fail(claimDue(t, s, now, 1)[0], false)
		}
		if got := claimDue(t, s, now.Add(5*time.Second-time.Microsecond), 9); len(got) != 0 {
			t.Errorf("%d claimed while the endpoint rests", len(got))
		}
		now = now.Add(5 * time.Second)
		probe := claimDue(t, s, now, 9)
		if len(probe) != 1 || !probe[0].Failing || len(claimDue(t, s, now, 9)) != 0 {
			t.Fatalf("%d deliveries after the rest, want one", len(probe))
		}
		none, err := s.ClaimDeliveries(t.Context(), store.DeliveryClaim{
			Environment: fiscal.Production, Lease: "l", Now: now.Add(2 * time.Minute), Until: now.Add(3 * time.Minute), Limit: 9, Failing: 0,
		})
		if err != nil || len(none) != 0 {
			t.Errorf("claimed %d for a failing endpoint with Failing 0, %v", len(none), err)
		}
		end(t, s, probe[0], now, nil)
		if got := readEndpoint(t, s, e); got.Failures != 0 || !got.FailingSince.IsZero() || got.Concurrency != 2 {
			t.Errorf("after a success: %+v", got)
		}
		if got := claimDue(t, s, now, 9); len(got) != 2 {
			t.Errorf("%d deliveries in progress after a success, want 2", len(got))
		}
	})
}

func TestAnEndpointIsDisabled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		bad := addEndpoint(t, s, sampleEndpoint(scope, "a"))
		good := addEndpoint(t, s, sampleEndpoint(scope, "webhook_endpoint.disabled"))
		addEvent(t, s, sampleEvent(scope, "a", noon))
		// Nine failures over more than five days, then the tenth.
		now := noon
		for i := range 10 {
			now = noon.Add(time.Duration(i) * 14 * time.Hour)
			got := claimDue(t, s, now, 1)
			if len(got) != 1 {
				t.Fatalf("attempt %d: %d claimed", i, len(got))
			}
			if disabled := end(t, s, got[0], now, again(now.Add(time.Hour))); disabled != (i == 9) {
				t.Errorf("after failure %d and %s: disabled = %v", i+1, now.Sub(noon), disabled)
			}
		}
		e := readEndpoint(t, s, bad)
		if e.Status != store.EndpointDisabled || e.DisabledReason != store.DisabledFailing || e.Failures != 10 || !e.FailingSince.Equal(noon) {
			t.Errorf("disabled: %+v", e)
		}
		log, err := s.DeliveryLog(t.Context(), scope, bad.ID, "", 1)
		if err != nil || len(log) != 1 || !log[0].NextAt.IsZero() {
			t.Errorf("the last attempt must have no next one: %+v, %v", log, err)
		}
		notified := claimDue(t, s, now, 9)
		if len(notified) != 1 || notified[0].EndpointID != good.ID || notified[0].Kind != "webhook_endpoint.disabled" {
			t.Errorf("the other endpoint gets %+v; want the event that one was disabled", notified)
		}
		missed := addEvent(t, s, sampleEvent(scope, "a", now))
		if got := storetest.DeliveriesOf(t, s, missed); len(got) != 0 {
			t.Errorf("a delivery for a disabled endpoint: %+v", got)
		}
		// Its pending delivery continues when it is enabled.
		now = now.Add(2 * time.Hour)
		if got := claimDue(t, s, now, 9); len(got) != 1 || got[0].EndpointID != good.ID {
			t.Errorf("while it is disabled: %+v", got)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.EnableEndpoint(ctx, scope, bad.ID, now) })
		got := claimDue(t, s, now, 9)
		if len(got) != 1 || got[0].EndpointID != bad.ID || got[0].Attempt != 10 {
			t.Fatalf("enabled: %+v", got)
		}
		o := again(now.Add(time.Hour))
		o.Gone = true
		if !end(t, s, got[0], now, o) || readEndpoint(t, s, bad).DisabledReason != store.DisabledGone {
			t.Error("an endpoint that is gone was not disabled at once")
		}
	})
}

// Neither ten failures in one day nor five days with one success disable an endpoint.
func TestAnEndpointIsNotDisabledTooEarly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "a"))
		for range 30 {
			addEvent(t, s, sampleEvent(e.Scope, "a", noon))
		}
		for i := range 30 {
			now := noon.Add(time.Duration(i) * 5 * time.Hour)
			for _, d := range claimDue(t, s, now, 1) {
				failure := again(now.Add(1000 * time.Hour))
				if i == 15 {
					failure = nil
				}
				if end(t, s, d, now, failure) {
					t.Fatalf("disabled after %s", now.Sub(noon))
				}
			}
		}
		if got := readEndpoint(t, s, e); got.Failures != 14 {
			t.Errorf("%d failures, want 14", got.Failures)
		}
	})
}
