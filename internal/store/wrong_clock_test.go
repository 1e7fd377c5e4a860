package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A job that waits for longer than any pause lasts was stored by a clock that was ahead. It
// is due. All others wait.
func TestAJobOfAClockThatWasAheadIsDue(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		var want []string
		for i, j := range []struct {
			stage string
			in    time.Duration
			due   bool
		}{
			{"issue", 24 * hour, true},
			{"submit", 2 * hour, true},
			{"poll", 50 * 365 * 24 * hour, true},
			{"poll", 72 * time.Minute, false}, // hourly, with jitter
			{"issue", time.Second, false},
			{"deliver", 28*hour + 48*time.Minute, false}, // daily, with jitter
			{"deliver", 24 * hour, false},
			{"deliver", 30 * hour, true},
		} {
			name := fmt.Sprint(i, " ", j.stage)
			r := sampleRegistration(sampleInvoice(scope, name))
			r.Job = &store.Job{Scope: scope, DocumentID: r.Invoice.DocumentID, Plan: "live", Stage: j.stage, RunAt: noon.Add(j.in), CreatedAt: noon}
			if _, err := s.Register(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if j.due {
				want = append(want, r.Invoice.DocumentID)
			}
		}
		for _, queue := range []store.Queue{store.QueueMain, store.QueueDeliver} {
			if next, err := s.NextJob(t.Context(), fiscal.Sandbox, noon, queue); err != nil || !next.Equal(noon) {
				t.Errorf("the next job of %s is due at %s, %v; want now", queue, next, err)
			}
		}
		got := map[string]bool{}
		claim := func(front *store.Front, except string) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				jobs, err := take(ctx, tx, store.Claim{Lease: store.NewID(), Now: noon, Until: noon.Add(time.Minute), Limit: 10, Front: front, Except: [4]string{except}})
				for _, j := range jobs {
					got[j.DocumentID] = true
				}
				return err
			})
		}
		claim(new(store.Front), scope.TaxpayerID)
		if len(got) > 0 {
			t.Error("a claim took jobs of a taxpayer that it skips")
		}
		claim(new(store.Front), "")
		claim(new(store.Front), "") // they are leased now
		for _, id := range want {
			if !got[id] {
				t.Errorf("a job is not due: %s of %s", id, strings.Join(want, " "))
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d jobs are due, want %d", len(got), len(want))
		}
	})
}

// The same for deliveries. An event is due at once, so a delivery without an attempt has no
// pause.
func TestADeliveryOfAClockThatWasAheadIsDue(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		e := addEndpoint(t, s, sampleEndpoint(addLiveScope(t, s), "*"))
		// retried adds an event of which an attempt has failed.
		retried := func(in time.Duration) store.Event {
			n := sampleEvent(e.Scope, "a", noon)
			addEvent(t, s, n)
			claimed := claimDue(t, s, noon, 9)
			if len(claimed) != 1 {
				t.Fatalf("%d deliveries are due, want 1", len(claimed))
			}
			end(t, s, claimed[0], noon, again(noon.Add(in)))
			return n
		}
		waits := retried(26*hour + 24*time.Minute) // the longest pause, with jitter
		far := retried(48 * hour)
		got := claimDue(t, s, noon, 9)
		if len(got) != 1 || got[0].EventID != far.ID {
			t.Fatalf("claimed %v, want %s and not %s", got, far.ID, waits.ID)
		}
		end(t, s, got[0], noon, nil)

		ahead := sampleEvent(e.Scope, "a", noon.Add(24*hour))
		ahead.DocumentID, ahead.Revision = "document", 1
		after := sampleEvent(e.Scope, "a", noon.Add(24*hour+time.Millisecond))
		after.DocumentID, after.Revision = "document", 2
		soon := sampleEvent(e.Scope, "a", noon.Add(time.Minute)) // a clock that differs a little
		for _, n := range []store.Event{after, ahead, soon} {
			addEvent(t, s, n)
		}
		for _, want := range []store.Event{ahead, after} {
			got := claimDue(t, s, noon, 9)
			if len(got) != 1 || got[0].EventID != want.ID || !got[0].RunAt.Equal(noon) {
				t.Fatalf("claimed %v, want revision %d, due now", got, want.Revision)
			}
			if more := claimDue(t, s, noon, 9); len(more) > 0 {
				t.Fatalf("claimed %v during the attempt", more)
			}
			end(t, s, got[0], noon, nil)
		}
		if got := claimDue(t, s, noon, 9); len(got) > 0 {
			t.Errorf("claimed %v", got)
		}
	})
}

// An export that a holder took while the clock was ahead is open.
func TestAnExportOfAClockThatWasAheadIsOpen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		day := fiscal.DateOf(noon)
		made := store.Export{Scope: scope, ID: store.NewID(), From: day, To: day, CreatedAt: noon, ExpiresAt: noon.Add(store.ExportKept)}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateExport(ctx, made) })
		ahead := noon.Add(24 * time.Hour)
		if _, err := s.ClaimExport(t.Context(), scope.Environment, "one", ahead, ahead.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ClaimExport(t.Context(), scope.Environment, "two", noon, noon.Add(time.Minute)); err != nil {
			t.Errorf("after the correction: %v", err)
		}
		if _, err := s.ClaimExport(t.Context(), scope.Environment, "three", noon, noon.Add(time.Minute)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("while another one holds it: %v", err)
		}
	})
}
