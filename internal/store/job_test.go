package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addJob creates an invoice with a job that is due at the given moment.
func addJob(t *testing.T, s *store.Store, scope store.Scope, externalID string, due time.Time) store.Job {
	t.Helper()
	r := sampleRegistration(sampleInvoice(scope, externalID))
	r.Job = &store.Job{Scope: scope, DocumentID: r.Invoice.DocumentID, Plan: "plan", Stage: "first", RunAt: due, CreatedAt: noon}
	if known, err := s.Register(t.Context(), r); err != nil || known != nil {
		t.Fatalf("register: known %v, %v", known, err)
	}
	return *r.Job
}

// claim claims jobs of the sandbox.
func claim(t *testing.T, s *store.Store, lease string, now, until time.Time, limit int) (jobs []store.Job) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		jobs, err = take(ctx, tx, store.Claim{Lease: lease, Now: now, Until: until, Limit: limit})
		return err
	})
	return jobs
}

// take finds due jobs of the sandbox and claims them.
func take(ctx context.Context, tx *store.Tx, c store.Claim) ([]store.Job, error) {
	due, err := tx.DueJobs(ctx, fiscal.Sandbox, c)
	if err != nil {
		return nil, err
	}
	return tx.Claim(ctx, fiscal.Sandbox, c, due)
}

func TestAClaimTakesWhatIsDue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		late := addJob(t, s, scope, "late", noon)
		early := addJob(t, s, scope, "early", noon.Add(-time.Minute))
		addJob(t, s, scope, "future", noon.Add(time.Microsecond))
		addJob(t, s, store.Scope{Environment: fiscal.Production, TaxpayerID: scope.TaxpayerID}, "elsewhere", noon)
		until := noon.Add(30 * time.Second)

		first := claim(t, s, "w1", noon, until, 1)
		early.Attempt, early.Lease, early.LeaseUntil = 1, "w1", until
		if diff := cmp.Diff([]store.Job{early}, first); diff != "" {
			t.Errorf("the oldest comes first (-want +got):\n%s", diff)
		}
		second := claim(t, s, "w2", noon, until, 10)
		late.Attempt, late.Lease, late.LeaseUntil = 1, "w2", until
		if diff := cmp.Diff([]store.Job{late}, second); diff != "" {
			t.Errorf("the remaining due job (-want +got):\n%s", diff)
		}
		if third := claim(t, s, "w3", noon, until, 10); len(third) != 0 {
			t.Errorf("nothing is left, got %v", third)
		}
	})
}

func TestTheNextJobIsTheEarliestWithoutALease(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		next := func(env fiscal.Environment, now, want time.Time) {
			t.Helper()
			got, err := s.NextJob(t.Context(), env, now)
			if want.IsZero() {
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("next job %v, %v; want ErrNotFound", got, err)
				}
				return
			}
			if err != nil || !got.Equal(want) {
				t.Errorf("next job %v, %v; want %v", got, err, want)
			}
		}
		next(fiscal.Sandbox, noon, time.Time{})
		addJob(t, s, scope, "1", noon.Add(time.Hour))
		addJob(t, s, scope, "2", noon)
		next(fiscal.Sandbox, noon, noon)
		next(fiscal.Production, noon, time.Time{})
		claim(t, s, "w", noon, noon.Add(time.Minute), 10)
		next(fiscal.Sandbox, noon, noon.Add(time.Hour))
		next(fiscal.Sandbox, noon.Add(time.Minute), noon) // the lease has expired
	})
}

func TestAWorkerWithAnExpiredLeaseCannotCommit(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		addJob(t, s, scope, "1", noon)
		until := noon.Add(30 * time.Second)
		held := claim(t, s, "expired", noon, until, 1)
		if early := claim(t, s, "too early", until.Add(-1000), until, 1); len(early) != 0 {
			t.Fatalf("a job under a lease was claimed: %v", early)
		}
		again := claim(t, s, "next", until, until.Add(30*time.Second), 1)
		if len(held) != 1 || len(again) != 1 || again[0].Attempt != 2 {
			t.Fatalf("claimed %v, then %v; want the same job, the second time as attempt 2", held, again)
		}
		ends := map[string]func(tx *store.Tx, j store.Job) error{
			"move": func(tx *store.Tx, j store.Job) error {
				return tx.Do(t.Context(), new(store.Batch).MoveJob(j, "next", until))
			},
			"retry": func(tx *store.Tx, j store.Job) error {
				return tx.Do(t.Context(), new(store.Batch).RetryJob(j, until, "broke"))
			},
			"finish": func(tx *store.Tx, j store.Job) error { return tx.Do(t.Context(), new(store.Batch).FinishJob(j)) },
		}
		for what, end := range ends {
			// The other writes of the transaction must be rolled back too.
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				err := tx.Do(t.Context(), new(store.Batch).AddHistoryEntry(store.HistoryEntry{Scope: scope, InvoiceID: "i", ID: what, At: noon, Kind: "expired"}))
				return errors.Join(err, end(tx, held[0]))
			})
			if !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("%s with the expired lease: %v, want ErrLeaseLost", what, err)
			}
		}
		if events, err := s.History(t.Context(), scope, "i"); err != nil || len(events) != 0 {
			t.Errorf("the worker with the expired lease wrote %v, %v", events, err)
		}
		update(t, s, func(_ context.Context, tx *store.Tx) error { return ends["finish"](tx, again[0]) })
		err := s.Update(t.Context(), func(tx *store.Tx) error { return ends["finish"](tx, again[0]) })
		if !errors.Is(err, store.ErrLeaseLost) || count(t, s, "jobs") != 0 {
			t.Errorf("finishing twice: %v with %d jobs left; want ErrLeaseLost and none", err, count(t, s, "jobs"))
		}
	})
}

func TestAJobIsReleasedForItsNextStageOrARetry(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		want := addJob(t, s, addScope(t, s), "1", noon)
		until := noon.Add(30 * time.Second)
		want.Lease, want.LeaseUntil = "w", until

		held := claim(t, s, "w", noon, until, 1)[0]
		later := noon.Add(time.Second)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Do(ctx, new(store.Batch).RetryJob(held, later, "no answer"))
		})
		if early := claim(t, s, "w", noon, until, 1); len(early) != 0 {
			t.Errorf("claimed before it is due: %v", early)
		}
		held = claim(t, s, "w", later, until, 1)[0]
		want.Attempt, want.RunAt, want.Cause = 2, later, "no answer"
		if diff := cmp.Diff(want, held); diff != "" {
			t.Errorf("the retry (-want +got):\n%s", diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Do(ctx, new(store.Batch).MoveJob(held, "second", noon))
		})
		held = claim(t, s, "w", later, until, 1)[0]
		want.Stage, want.Attempt, want.RunAt, want.Cause = "second", 1, noon, ""
		if diff := cmp.Diff(want, held); diff != "" {
			t.Errorf("the next stage starts with attempt 1 (-want +got):\n%s", diff)
		}
	})
}

// Workers that claim at the same moment never get the same job, never more
// than they asked for, and together they get everything.
func TestAJobIsNeverClaimedTwice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const jobs = 60
		scope := addScope(t, s)
		for i := range jobs {
			addJob(t, s, scope, name("J", i), noon)
		}
		var mu sync.Mutex
		owner := map[string]string{}
		together(12, func(worker int) {
			for round := range jobs {
				lease := name("w", worker*jobs+round)
				var got []store.Job
				c := store.Claim{Lease: lease, Now: noon, Until: noon.Add(time.Minute), Limit: 3}
				due, err := s.DueJobs(t.Context(), fiscal.Sandbox, c) // outside of the transaction, as workers do
				if err == nil {
					err = s.Update(t.Context(), func(tx *store.Tx) (err error) {
						got, err = tx.Claim(t.Context(), fiscal.Sandbox, c, due)
						return err
					})
				}
				if err != nil || len(got) > 3 {
					t.Errorf("claimed %d of at most 3, %v", len(got), err)
				}
				mu.Lock()
				for _, j := range got {
					if before, taken := owner[j.DocumentID]; taken {
						t.Errorf("job %s is held by %s and by %s", j.DocumentID, before, lease)
					}
					owner[j.DocumentID] = lease
				}
				all := len(owner) == jobs
				mu.Unlock()
				if all {
					return
				}
			}
		})
		if len(owner) != jobs {
			t.Errorf("%d of %d jobs were claimed", len(owner), jobs)
		}
	})
}

// A worker took a lease while the clock was a day ahead, and died. After the clock is
// correct again, another worker can claim the job.
func TestALeaseFromAClockThatWasAheadHasExpired(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		addJob(t, s, addScope(t, s), "1", noon)
		ahead := noon.Add(24 * time.Hour)
		if got := claim(t, s, "dead", ahead, ahead.Add(30*time.Second), 1); len(got) != 1 {
			t.Fatalf("claimed %v", got)
		}
		if at, err := s.NextJob(t.Context(), fiscal.Sandbox, noon); err != nil || !at.Equal(noon) {
			t.Errorf("next at %s, %v", at, err)
		}
		if got := claim(t, s, "next", noon, noon.Add(30*time.Second), 1); len(got) != 1 {
			t.Errorf("claimed %v", got)
		}
		if got := claim(t, s, "too early", noon, noon.Add(30*time.Second), 1); len(got) != 0 {
			t.Errorf("claimed under a lease: %v", got)
		}
	})
}

func TestAClaimSkipsTheExceptedTaxpayers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		busy, other := addScope(t, s), addScope(t, s)
		for i := range 5 {
			addJob(t, s, busy, fmt.Sprint("busy-", i), noon)
		}
		want := addJob(t, s, other, "other", noon.Add(time.Second))
		wanted := store.Claim{Lease: "l", Now: noon.Add(time.Minute), Until: noon.Add(2 * time.Minute), Limit: 3, Except: [4]string{busy.TaxpayerID}}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			got, err := take(ctx, tx, wanted)
			if len(got) != 1 || got[0].DocumentID != want.DocumentID {
				t.Errorf("claimed %v", got)
			}
			return err
		})
	})
}

func TestWaitingDocumentsListsUnfinishedDocuments(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		sandbox, other := addScope(t, s), addScope(t, s)
		live := store.Scope{Environment: fiscal.Production, TaxpayerID: sandbox.TaxpayerID}
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: other.TaxpayerID}
		add := func(scope store.Scope, externalID string, status fiscal.Status, age time.Duration, stage string) {
			inv := sampleInvoice(scope, externalID)
			inv.Status, inv.CreatedAt = status, noon.Add(-age)
			r := sampleRegistration(inv)
			if stage != "" {
				r.Job = &store.Job{Scope: scope, DocumentID: inv.DocumentID, Plan: "plan", Stage: stage, RunAt: noon, CreatedAt: noon}
			}
			if known, err := s.Register(t.Context(), r); err != nil || known != nil {
				t.Fatalf("register: %v, %v", known, err)
			}
		}
		add(sandbox, "walks", fiscal.Queued, 5*time.Hour, "walk")
		add(sandbox, "rests", fiscal.Submitted, 9*time.Hour, "")
		add(live, "to deliver", fiscal.Accepted, 4*time.Hour, "deliver")
		add(live, "done", fiscal.Accepted, 3*time.Hour, "")
		add(live, "forgotten", fiscal.OutcomeUnknown, 2*time.Hour, "")
		add(elsewhere, "polled", fiscal.Processing, 3*time.Hour, "poll")
		add(elsewhere, "refused", fiscal.ValidationFailed, 3*time.Hour, "")

		for _, tt := range []struct {
			name   string
			within store.Scope
			want   []string
		}{
			{"all, the oldest first", store.Scope{}, []string{"walks walk", "to deliver deliver", "polled poll", "forgotten "}},
			{"of an environment", store.Scope{Environment: fiscal.Production}, []string{"to deliver deliver", "forgotten "}},
			{"of a taxpayer", store.Scope{TaxpayerID: sandbox.TaxpayerID}, []string{"walks walk", "to deliver deliver", "forgotten "}},
			{"of both", elsewhere, []string{"polled poll"}},
			{"of an unknown taxpayer", store.Scope{TaxpayerID: "unknown"}, nil},
		} {
			all, err := s.WaitingDocuments(t.Context(), tt.within)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range all {
				stage := ""
				if w.Job != nil {
					stage = w.Job.Stage
					if !w.Job.RunAt.Equal(noon) {
						t.Errorf("%s is due at %s", w.ExternalID, w.Job.RunAt)
					}
				}
				got = append(got, w.ExternalID+" "+stage)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	})
}

// A worker whose last commits are lost, because the database was replaced by an older
// copy, cannot continue with the job: the copy has the lease and another stage.
func TestAJobAtAnotherStageIsNotHeld(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		addJob(t, s, addScope(t, s), "held", noon)
		held := claim(t, s, "worker", noon, noon.Add(time.Minute), 1)[0]
		later := held
		later.Stage = "a later one"
		for name, rows := range map[string]*store.Batch{
			"MoveJob":   new(store.Batch).MoveJob(later, "next", noon),
			"CarryJob":  new(store.Batch).CarryJob(later, "next", noon),
			"HoldJob":   new(store.Batch).HoldJob(later, noon),
			"FinishJob": new(store.Batch).FinishJob(later),
			"RetryJob":  new(store.Batch).RetryJob(later, noon, "failed"),
		} {
			if err := s.Commit(t.Context(), rows); !errors.Is(err, store.ErrLeaseLost) {
				t.Errorf("%s: %v, want ErrLeaseLost", name, err)
			}
		}
		if err := s.Commit(t.Context(), new(store.Batch).FinishJob(held)); err != nil {
			t.Errorf("at its own stage: %v", err)
		}
	})
}

func TestAJobIsTakenOver(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		addJob(t, s, scope, "held", noon)
		held := claim(t, s, "worker", noon, noon.Add(time.Minute), 1)[0]
		ours := store.Job{Scope: scope, DocumentID: held.DocumentID, Plan: "other", Stage: "other", Lease: "ours", LeaseUntil: noon.Add(time.Second), CreatedAt: noon, RunAt: noon}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.TakeOverJob(ctx, ours) })
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Do(t.Context(), new(store.Batch).MoveJob(held, "next", noon)) })
		if !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("the previous worker: %v, want ErrLeaseLost", err)
		}
		// The job has another lease and another stage, and is otherwise the same.
		want := held
		want.Stage, want.Lease, want.LeaseUntil = ours.Stage, ours.Lease, ours.LeaseUntil
		got, err := s.JobOf(t.Context(), scope, held.DocumentID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("taken over (-want +got):\n%s", diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Do(ctx, new(store.Batch).FinishJob(ours)) })

		// Without a job, TakeOverJob creates one.
		if _, err := s.JobOf(t.Context(), scope, held.DocumentID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("finished: %v", err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.TakeOverJob(ctx, ours) })
		got, err = s.JobOf(t.Context(), scope, held.DocumentID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ours, got); diff != "" {
			t.Errorf("created (-want +got):\n%s", diff)
		}
	})
}
