package store_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// eachSkew runs fn with two nodes of one database whose clocks differ.
func eachSkew(t *testing.T, fn func(t *testing.T, clock *storetest.Clock, first, second *store.Store)) {
	t.Helper()
	for _, skew := range []time.Duration{10 * time.Minute, -10 * time.Minute, 130 * time.Second, 0} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				clock := storetest.NewClock()
				ahead := func() time.Time { return clock.Now().Add(skew) }
				first, second := storetest.Open(t, address, clock.Now), storetest.OpenNode(t, address, ahead, clock.Now)
				if got, ok := second.ClockSkew(); got != skew || !ok {
					t.Errorf("the skew is %s, %v; want %s", got, ok, skew)
				}
				fn(t, clock, first, second)
			})
		})
	}
}

func TestNodesWithDifferentClocksLeaseAJobOnce(t *testing.T) {
	t.Parallel()
	eachSkew(t, func(t *testing.T, clock *storetest.Clock, first, second *store.Store) {
		scope := addScope(t, first)
		r := sampleRegistration(sampleInvoice(scope, "A"))
		r.Job = &store.Job{Scope: scope, DocumentID: r.Invoice.DocumentID, Stage: "issue", RunAt: first.Now(), CreatedAt: first.Now()}
		if _, err := first.Register(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		claim := func(s *store.Store) (n int) {
			now := s.Now()
			c := store.Claim{Lease: store.NewID(), Now: now, Until: now.Add(time.Minute), Limit: 10}
			due, err := s.DueJobs(t.Context(), scope.Environment, c)
			if err != nil {
				t.Fatal(err)
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				jobs, err := tx.Claim(ctx, scope.Environment, c, due)
				n = len(jobs)
				return err
			})
			return n
		}
		leases := 0
		for range 5 {
			leases += claim(first) + claim(second)
			clock.Advance(10 * time.Second)
		}
		if leases != 1 {
			t.Errorf("the job was leased %d times in 50 seconds, want once", leases)
		}
		clock.Advance(time.Minute)
		if leases = claim(second) + claim(first); leases != 1 {
			t.Errorf("after the lease ended, the job was leased %d times, want once", leases)
		}
	})
}

func TestNodesWithDifferentClocksShareARateWindow(t *testing.T) {
	t.Parallel()
	eachSkew(t, func(t *testing.T, _ *storetest.Clock, first, second *store.Store) {
		take := func(s *store.Store) int64 {
			return takeBlock(t, s, "credential", s.Now().Truncate(time.Minute).Add(time.Minute), 1)
		}
		for i := int64(1); i < 20; i += 2 {
			if got := take(first); got != i {
				t.Errorf("the first node: %d requests are reserved, want %d", got, i)
			}
			if got := take(second); got != i+1 {
				t.Errorf("the second node: %d requests are reserved, want %d", got, i+1)
			}
		}
	})
}

func TestANodeWithAnotherClockIsSeenAlive(t *testing.T) {
	t.Parallel()
	eachSkew(t, func(t *testing.T, clock *storetest.Clock, first, second *store.Store) {
		nodes := map[string]*store.Store{"first": first, "second": second}
		for name, s := range nodes {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.RecordHeartbeat(ctx, store.Node{ID: name, Environment: fiscal.Production, HasWitness: true, SeenAt: s.Now()})
			})
			for other, reader := range nodes {
				latest, err := reader.LatestHeartbeat(t.Context(), fiscal.Production)
				if age := reader.Now().Sub(latest).Abs(); err != nil || age > time.Second {
					t.Errorf("%s sees the heartbeat of %s at an age of %s, %v", other, name, age, err)
				}
			}
			clock.Advance(time.Minute)
		}
	})
}

// The store asks a real server for its time.
func TestAPostgresStoreHasTheTimeOfTheServer(t *testing.T) {
	t.Parallel()
	const skew = 10 * time.Minute
	s, err := store.Open(t.Context(), storetest.Address(t, "postgres"), store.Options{
		Now: func() time.Time { return time.Now().Add(skew) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if off := time.Since(s.Now()).Abs(); off > 30*time.Second {
		t.Errorf("the time is off by %s", off)
	}
	if got, ok := s.ClockSkew(); !ok || (got-skew).Abs() > 30*time.Second {
		t.Errorf("the skew is %s, %v; want %s", got, ok, skew)
	}
}
