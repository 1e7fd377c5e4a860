package pipeline

import (
	"context"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// conflicts is how often another transaction changes the invoice before the answer of a
// stage is committed. It is more often than a worker tries without a pause.
const conflicts = 8

// note changes an invoice as a notice does: the time of its last change moves.
func (b *env) note(inv store.Invoice) {
	b.t.Helper()
	before, err := b.o.Store.Invoice(b.t.Context(), inv.Scope, inv.ID)
	b.must(err)
	after := before
	after.UpdatedAt = before.NextUpdate(b.o.Now())
	b.must(b.o.Store.Commit(b.t.Context(), new(store.Batch).UpdateInvoice(before, after)))
}

// number gives a document a number, and returns its job, which the worker holds.
func (b *env) number(inv store.Invoice) store.Job {
	b.t.Helper()
	ctx, numbers := b.t.Context(), store.NumberRange{Scope: b.scope, ID: store.NewID(), Type: inv.Type, First: 1, Last: 9, Next: 1, CreatedAt: b.o.Now()}
	b.must(b.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.AddNumberRange(ctx, numbers) }))
	job := b.claimOne()
	issued := store.Issued{
		Scope: b.scope, RNC: "199000013", ENCF: "E320000000001", DocumentID: inv.DocumentID, NumberRangeID: numbers.ID,
		SignedAt: b.o.Now(), CreatedAt: b.o.Now(), XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte{3},
	}
	b.must(b.o.Store.IssueAll(ctx, "", numbers, []store.Issuance{{Issued: issued, Job: job}}, job.Stage, job.LeaseUntil))
	return job
}

// A worker that has lost its lease has an answer of the authority in hand. Notices change
// the invoice while it is committed. The answer is kept.
func TestALateAnswerIsCommittedAlthoughTheInvoiceChanges(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var b, other *env
		var inv store.Invoice
		tries := 0
		b = newEnv(t, address, scripted{
			step: func(context.Context, Work) (Result, error) {
				b.clock.Advance(wake.MaxLease)
				other.claimOne()
				verdict := evidence.Item{Kind: evidence.Verdict, Verdict: fiscal.VerdictAccepted, At: b.o.Now()}
				return Result{Findings: []Finding{{Item: verdict}}}, nil
			},
			settle: func() Move {
				if tries > 0 && tries <= conflicts && b.o.Store.Shared() {
					other.note(inv)
				}
				return Move{Status: fiscal.Accepted}
			},
		})
		b.o.Point = func(name string) error {
			if name == "before late y" {
				if tries++; tries <= conflicts && !b.o.Store.Shared() {
					return store.ErrInvoiceChanged // SQLite has one transaction at a time
				}
			}
			return nil
		}
		b.o.Env, b.scope.Environment = fiscal.Certification, fiscal.Certification // the sandbox has no numbers
		other = b.beside(address, Sandbox{})
		other.o.Env = b.o.Env
		inv = b.add("A", "x", "y")
		b.RunJob(t.Context(), b.number(inv))
		if got := b.status(inv); got != fiscal.Accepted || tries != conflicts+1 {
			t.Errorf("after %d tries the document is %s: the answer is lost", tries, got)
		}
		stored, err := b.o.Store.EvidenceOf(t.Context(), b.scope, inv.DocumentID)
		if err != nil || len(stored) != 1 {
			t.Errorf("the document has %d items of evidence, want 1 (%v)", len(stored), err)
		}
	})
}

// The same for a worker that holds its lease.
func TestAnAnswerIsCommittedAlthoughTheInvoiceChanges(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var b *env
		var inv store.Invoice
		tries := 0
		b = newEnv(t, address, scripted{
			step: func(context.Context, Work) (Result, error) { return Result{}, nil },
			settle: func() Move {
				if tries++; tries <= conflicts {
					b.clock.Advance(1e6)
					b.note(inv)
				}
				return Move{Status: fiscal.Accepted}
			},
		})
		inv = b.add("A", "x", "y")
		b.RunJob(t.Context(), b.claimOne())
		if got := b.status(inv); got != fiscal.Accepted || tries != conflicts+1 {
			t.Errorf("after %d tries the document is %s: the answer is lost", tries, got)
		}
	})
}
