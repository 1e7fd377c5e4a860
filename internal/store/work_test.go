package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestWaitingDocuments(t *testing.T) {
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
			{"of nobody", store.Scope{TaxpayerID: "nobody"}, nil},
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

func TestADocumentIsFoundByEitherName(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		inv := addInvoice(t, s, addScope(t, s), "one")
		addInvoice(t, s, addScope(t, s), "two")
		for _, id := range []string{inv.ID, inv.DocumentID} {
			got, err := s.AnyDocument(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inv, got); diff != "" {
				t.Errorf("by %s (-want +got):\n%s", id, diff)
			}
		}
		if _, err := s.AnyDocument(t.Context(), store.NewID()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("nothing: %v", err)
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
			t.Errorf("its holder goes on: %v", err)
		}
		// It is the same job, in other hands.
		want := held
		want.Lease, want.LeaseUntil = ours.Lease, ours.LeaseUntil
		got, err := s.JobOf(t.Context(), scope, held.DocumentID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("taken over (-want +got):\n%s", diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Do(ctx, new(store.Batch).FinishJob(ours)) })

		// Where there is none, there is one then.
		if _, err := s.JobOf(t.Context(), scope, held.DocumentID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("finished: %v", err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.TakeOverJob(ctx, ours) })
		got, err = s.JobOf(t.Context(), scope, held.DocumentID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ours, got); diff != "" {
			t.Errorf("made (-want +got):\n%s", diff)
		}
	})
}
