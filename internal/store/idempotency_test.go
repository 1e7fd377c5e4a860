package store_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAReplayReturnsTheFirstAnswerOfAKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		first := sampleRegistration(sampleInvoice(scope, "A"))
		second := sampleRegistration(sampleInvoice(scope, "B"))
		again := sampleRegistration(sampleInvoice(scope, "A"))
		second.Reply.Key, again.Reply.Key = first.Reply.Key, first.Reply.Key
		second.Reply.Body, second.Reply.Fingerprint = []byte("other"), []byte("other")
		if _, err := s.StoredReply(t.Context(), scope, first.Reply.Operation, first.Reply.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a new key: %v, want ErrNotFound", err)
		}
		for i, want := range []*store.StoredReply{nil, &first.Reply, &first.Reply} {
			known, err := s.Register(t.Context(), []store.Registration{first, second, again}[i])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, known); diff != "" {
				t.Errorf("request %d got (-want +got):\n%s", i, diff)
			}
		}
		got, err := s.StoredReply(t.Context(), scope, first.Reply.Operation, first.Reply.Key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.Reply, got); diff != "" {
			t.Errorf("the stored answer (-want +got):\n%s", diff)
		}
		if invoices, events := count(t, s, "invoices"), count(t, s, "history"); invoices != 1 || events != 1 {
			t.Errorf("the repetitions left %d invoices and %d events, want one of each", invoices, events)
		}
	})
}

// Registrations that share a commit do not harm each other: when one has a key that exists
// or an external id that is taken, the others still succeed.
func TestConcurrentRegistrationsAreIndependent(t *testing.T) {
	t.Parallel()
	const clients, each = 32, 20
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		before := s.WorkCount().Commits
		var made, repeated, taken atomic.Int64
		together(clients, func(client int) {
			for i := range each {
				// Every fifth key and every seventh external id is one that all clients use.
				id := fmt.Sprintf("%d-%d", client, i)
				r := sampleRegistration(sampleInvoice(scope, id))
				r.Reply.Key = id
				if i%5 == 4 {
					r.Reply.Key = name("key", i)
				}
				if i%7 == 6 {
					r.Invoice.ExternalID = name("external", i)
				}
				if i%2 == 1 {
					r.Job = &store.Job{Scope: scope, DocumentID: r.Invoice.DocumentID, Plan: "live", Stage: "issue", RunAt: noon, CreatedAt: noon}
				}
				known, err := s.Register(t.Context(), r)
				switch {
				case errors.Is(err, store.ErrExternalIDTaken):
					taken.Add(1)
				case err != nil:
					t.Errorf("registration %s: %v", id, err)
				case known != nil:
					repeated.Add(1)
				default:
					made.Add(1)
					if got, err := s.StoredReply(t.Context(), scope, r.Reply.Operation, r.Reply.Key); err != nil || got.ObjectID != r.Invoice.ID {
						t.Errorf("registration %s: the stored answer has %s, %v; want %s", id, got.ObjectID, err, r.Invoice.ID)
					}
				}
			}
		})
		// All clients use 4 keys and 2 external ids. One client gets each of them.
		if want := [3]int64{clients*(each-6) + 6, 4 * (clients - 1), 2 * (clients - 1)}; [3]int64{made.Load(), repeated.Load(), taken.Load()} != want {
			t.Errorf("%d made, %d repeated, %d taken; want %v", made.Load(), repeated.Load(), taken.Load(), want)
		}
		for _, table := range []string{"invoices", "history", "idempotency"} {
			if n := count(t, s, table); int64(n) != made.Load() {
				t.Errorf("%d rows of %s, want %d", n, table, made.Load())
			}
		}
		if commits := s.WorkCount().Commits - before; commits >= made.Load() {
			t.Errorf("%d commits for %d registrations: none shared a commit", commits, made.Load())
		}
	})
}

// A key is unique for an environment, a taxpayer and an operation. Keys that differ only
// by case or by a space are different keys.
func TestAKeyIsIndependentInEveryScope(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		elsewhere := store.Scope{Environment: fiscal.Production, TaxpayerID: scope.TaxpayerID}
		var all []store.Registration
		for i, in := range []struct {
			scope          store.Scope
			operation, key string
		}{
			{scope, "create_invoice", "k"},
			{scope, "create_invoice", "K"},
			{scope, "create_invoice", "k "},
			{scope, "another", "k"},
			{elsewhere, "create_invoice", "k"},
			{addScope(t, s), "create_invoice", "k"},
		} {
			r := sampleRegistration(sampleInvoice(in.scope, name("S", i)))
			r.Reply.Operation, r.Reply.Key = in.operation, in.key
			if known, err := s.Register(t.Context(), r); err != nil || known != nil {
				t.Errorf("answer %d: known %+v, %v", i, known, err)
			}
			all = append(all, r)
		}
		for i, want := range all {
			got, err := s.StoredReply(t.Context(), want.Reply.Scope, want.Reply.Operation, want.Reply.Key)
			if err != nil || got.ObjectID != want.Invoice.ID {
				t.Errorf("answer %d: object %s, %v; want %s", i, got.ObjectID, err, want.Invoice.ID)
			}
		}
	})
}

// Of fifty concurrent requests with one key, one creates the invoice, and all others get
// its answer. Half of them have a job, like a scenario of the sandbox and every live
// document.
func TestOneOfManyWithTheSameKeyWins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		var winners atomic.Int64
		var winner atomic.Pointer[store.StoredReply]
		seen := make([]*store.StoredReply, 50)
		together(len(seen), func(i int) {
			r := sampleRegistration(sampleInvoice(scope, "SHARED"))
			r.Reply.Key = "shared"
			if i%2 == 0 {
				r.Job = &store.Job{Scope: scope, DocumentID: r.Invoice.DocumentID, RunAt: noon, CreatedAt: noon}
			}
			known, err := s.Register(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if known == nil {
				winners.Add(1)
				winner.Store(&r.Reply)
			}
			seen[i] = known
		})
		if winners.Load() != 1 || count(t, s, "invoices") != 1 || count(t, s, "idempotency") != 1 || count(t, s, "history") != 1 {
			t.Fatalf("%d winners, %d invoices, %d answers, %d events; want one of each", winners.Load(),
				count(t, s, "invoices"), count(t, s, "idempotency"), count(t, s, "history"))
		}
		for _, known := range seen {
			if known == nil {
				continue // the winner
			}
			if diff := cmp.Diff(*winner.Load(), *known); diff != "" {
				t.Errorf("another request got (-winner +got):\n%s", diff)
			}
		}
	})
}

// A request that was refused does not use up its key.
func TestARefusedCreationLeavesItsKeyFree(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		addInvoice(t, s, scope, "TAKEN")
		for _, job := range []bool{false, true} {
			r := sampleRegistration(sampleInvoice(scope, "TAKEN"))
			if job {
				r.Job = &store.Job{Scope: scope, DocumentID: r.Invoice.DocumentID, RunAt: noon, CreatedAt: noon}
			}
			if known, err := s.Register(t.Context(), r); !errors.Is(err, store.ErrExternalIDTaken) {
				t.Errorf("with a job %v: known %v, %v; want ErrExternalIDTaken", job, known, err)
			}
			if _, err := s.StoredReply(t.Context(), scope, r.Reply.Operation, r.Reply.Key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("with a job %v: the key after the refusal: %v, want ErrNotFound", job, err)
			}
			r.Invoice.ExternalID = fmt.Sprint("FREE-", job)
			if known, err := s.Register(t.Context(), r); err != nil || known != nil {
				t.Errorf("with a job %v: the corrected request under the same key: known %v, %v", job, known, err)
			}
		}
		if invoices, events, jobs := count(t, s, "invoices"), count(t, s, "history"), count(t, s, "jobs"); invoices != 3 || events != 3 || jobs != 1 {
			t.Errorf("%d invoices, %d events, %d jobs; want 3, 3 and 1", invoices, events, jobs)
		}
	})
}

func TestHistoryAndAnswersNeverChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		inv := addInvoice(t, s, scope, "1")
		for _, statement := range []string{
			`UPDATE history SET detail = 'changed'`,
			`UPDATE history SET at = at`,
			`DELETE FROM history`,
			`UPDATE idempotency SET http_status = 200`,
			`DELETE FROM idempotency WHERE http_status = 202`,
		} {
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), statement) })
			if err == nil || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: %v, want an error other than ErrUnavailable", statement, err)
			}
		}
		events, err := s.History(t.Context(), scope, inv.ID)
		if err != nil || len(events) != 1 || events[0].Cause != "" || count(t, s, "idempotency") != 1 {
			t.Errorf("the rows after the refused statements: %v, %v", events, err)
		}
	})
}
