package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// issue gives a new invoice the next number of a range, as a worker does, and returns its
// job at the stage submit.
func issue(t *testing.T, s *store.Store, numbers *store.NumberRange) store.Job {
	t.Helper()
	encf := fmt.Sprintf("E%s%010d", numbers.Type, numbers.Next)
	inv := addInvoice(t, s, numbers.Scope, encf)
	job := store.Job{
		Scope: inv.Scope, DocumentID: inv.DocumentID, Plan: "live", Stage: "issue", Lease: "worker", LeaseUntil: noon.Add(time.Minute),
		RunAt: noon, CreatedAt: noon.Add(-time.Duration(numbers.Next) * time.Second), // the later number was registered first
	}
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.TakeOverJob(ctx, job) })
	issued := store.Issued{
		Scope: inv.Scope, RNC: "199000013", ENCF: encf, DocumentID: inv.DocumentID, NumberRangeID: numbers.ID,
		SignedAt: noon, CreatedAt: noon, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte{3},
	}
	if err := s.IssueAll(t.Context(), "", *numbers, []store.Issuance{{Issued: issued, Job: job}}, "submit", noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if read, err := s.Invoice(t.Context(), inv.Scope, inv.ID); err != nil || read.ENCF != "" {
		t.Errorf("the number %s is visible before it is shown (%v)", read.ENCF, err)
	}
	numbers.Next++
	job.Stage = "submit"
	return job
}

func commit(t *testing.T, s *store.Store, rows *store.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

// Documents that wait to be sent are found in the order of their numbers. One that is under
// way, and one that was set aside, are not among them.
func TestDocumentsToSendComeInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		numbers := addNumberRange(t, s)
		var jobs []store.Job
		for range 6 {
			jobs = append(jobs, issue(t, s, &numbers))
		}
		attempt := store.Attempt{Scope: numbers.Scope, DocumentID: jobs[0].DocumentID, Number: 1, Kind: "submit", Digest: []byte{2}, OpenedAt: noon}
		commit(t, s, new(store.Batch).OpenAttempt(attempt).ShowNumber(store.Issued{Scope: numbers.Scope, DocumentID: jobs[0].DocumentID, ENCF: "E320000000001"}))
		commit(t, s, new(store.Batch).SuspendJob(jobs[1], noon, noon, "the authority does not answer"))
		commit(t, s, new(store.Batch).SetAsideJob(jobs[2], noon.Add(time.Hour), "its range has ended"))
		commit(t, s, new(store.Batch).RetryJob(jobs[3], noon.Add(time.Second), "refused"))
		before := func(number int64, limit int) (found []string) {
			t.Helper()
			encf, err := fiscal.NewENCF(fiscal.Consumer, number)
			if err != nil {
				t.Fatal(err)
			}
			list, err := s.ToSendBefore(t.Context(), numbers.Scope, encf, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range list {
				state := "due"
				switch {
				case one.Leased(noon):
					state = "leased"
				case one.Suspended:
					state = "suspended"
				case one.RunAt.After(noon):
					state = "later"
				}
				found = append(found, one.ENCF[11:]+" "+state)
			}
			return found
		}
		for _, tt := range []struct {
			number int64
			limit  int
			want   []string
		}{
			{1, 9, nil}, {2, 9, nil}, {4, 9, []string{"02 suspended"}}, {7, 9, []string{"02 suspended", "04 later", "05 leased", "06 leased"}}, {7, 2, []string{"02 suspended", "04 later"}},
		} {
			if diff := cmp.Diff(tt.want, before(tt.number, tt.limit)); diff != "" {
				t.Errorf("before %d (-want +got):\n%s", tt.number, diff)
			}
		}
		attempt.ClosedAt, attempt.Class = noon, store.NotReceived
		commit(t, s, new(store.Batch).CloseAttempt(attempt))
		if diff := cmp.Diff([]string{"01 leased", "02 suspended"}, before(7, 2)); diff != "" {
			t.Errorf("after an attempt that was not received (-want +got):\n%s", diff)
		}

		// The lowest numbers go first although their documents were registered last.
		commit(t, s, new(store.Batch).QueueJob(jobs[4], "waits until E320000000002 was sent"))
		commit(t, s, new(store.Batch).SuspendJob(jobs[5], noon, noon, "the authority does not answer"))
		claim := store.Claim{Lease: "next", Now: noon, Until: noon.Add(time.Minute), Limit: 9, Suspended: 9}
		order := func() (ids []string) {
			due, err := s.DueJobs(t.Context(), fiscal.Production, claim)
			if err != nil {
				t.Fatal(err)
			}
			return due
		}
		if diff := cmp.Diff([]string{jobs[5].DocumentID, jobs[4].DocumentID, jobs[1].DocumentID}, order()); diff != "" {
			t.Errorf("in the order of registration (-want +got):\n%s", diff)
		}
		if err := s.LetGoFirst(t.Context(), numbers.Scope, []string{jobs[1].DocumentID, jobs[4].DocumentID, jobs[3].DocumentID}, noon); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{jobs[1].DocumentID, jobs[4].DocumentID, jobs[5].DocumentID}, order()); diff != "" {
			t.Errorf("after LetGoFirst (-want +got):\n%s", diff)
		}
	})
}

// A number that a witness has seen is not issued, also when the range is not fenced.
func TestASeenNumberIsNotTaken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		numbers := addNumberRange(t, s)
		report := func(seen int64) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.ReportSeen(ctx, numbers, seen) })
		}
		read := func() store.NumberRange {
			t.Helper()
			n, err := s.NumberRange(t.Context(), numbers.Scope, numbers.ID)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		take := func() error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.TakeNumbers(t.Context(), read(), 1) })
		}
		report(0)
		if err := take(); err != nil {
			t.Fatalf("a number that nobody has seen: %v", err)
		}
		report(1) // the range has issued it
		if err := take(); err != nil || read().Seen != 0 {
			t.Fatalf("%v, seen %d", err, read().Seen)
		}
		report(7)
		report(5)
		if err := take(); err == nil || read().Seen != 7 {
			t.Errorf("number %d was taken, seen %d", read().Next-1, read().Seen)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.FenceBehind(ctx, numbers, 7, noon)
			return err
		})
		fenced := read()
		report(9) // another node
		release := func(of store.NumberRange, next int64) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.ReleaseNumberRange(t.Context(), of, next) })
		}
		if err := release(fenced, 8); err == nil {
			t.Error("a range was released that another node has reported on meanwhile")
		}
		if err := release(read(), 10); err != nil || read().Next != 10 || read().Seen != 0 {
			t.Errorf("%v, %+v", err, read())
		}
		if err := take(); err != nil {
			t.Error(err)
		}
	})
}
