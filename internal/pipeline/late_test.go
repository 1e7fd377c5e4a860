package pipeline

import (
	"context"
	"testing"

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
	before, err := b.store.Invoice(b.t.Context(), inv.Scope, inv.ID)
	b.must(err)
	after := before
	after.UpdatedAt = NextUpdate(before.UpdatedAt, b.now())
	b.must(b.store.Commit(b.t.Context(), new(store.Batch).UpdateInvoice(before, after)))
}

// A worker that has lost its lease has an answer of the authority in hand. Notices change
// the invoice while it is committed. The answer is kept.
func TestALateAnswerIsCommittedAlthoughTheInvoiceChanges(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var b, other *env
		var inv store.Invoice
		tries := 0
		late := func(ctx context.Context, tx *store.Tx) (store.Invoice, bool, error) {
			before, err := tx.Invoice(ctx, inv.Scope, inv.ID)
			if err != nil {
				return before, false, err
			}
			if tries++; tries <= conflicts {
				if !b.store.Shared() {
					return store.Invoice{}, false, store.ErrInvoiceChanged // SQLite has one transaction at a time
				}
				other.note(inv)
			}
			rows := new(store.Batch)
			after, notified := Change{Status: fiscal.Accepted}.Apply(rows, before, false, b.now())
			return after, notified, tx.Do(ctx, rows)
		}
		b = newEnv(t, address, scripted{step: func(context.Context, Work) (Step, error) {
			b.clock.Advance(wake.MaxLease)
			other.claimOne()
			return Step{Change: Change{Status: fiscal.Accepted}, CommitLate: late}, nil
		}})
		other = b.beside(address, Sandbox{})
		inv = b.add("A", "x", "y")
		b.RunJob(t.Context(), b.claimOne())
		if got := b.status(inv); got != fiscal.Accepted || tries != conflicts+1 {
			t.Errorf("after %d tries the document is %s: the answer is lost", tries, got)
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
		decide := func(*store.Batch, store.Invoice) (Change, error) { //nolint:unparam // the type of Step.Decide
			if tries++; tries <= conflicts {
				b.clock.Advance(1e6)
				b.note(inv)
			}
			return Change{Status: fiscal.Accepted}, nil
		}
		b = newEnv(t, address, scripted{step: func(context.Context, Work) (Step, error) { return Step{Decide: decide}, nil }})
		inv = b.add("A", "x", "y")
		b.RunJob(t.Context(), b.claimOne())
		if got := b.status(inv); got != fiscal.Accepted || tries != conflicts+1 {
			t.Errorf("after %d tries the document is %s: the answer is lost", tries, got)
		}
	})
}
