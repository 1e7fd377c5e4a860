package pipeline

import (
	"context"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// An answer that comes when the process has begun to stop, and the time for its stages is
// over, is committed: also when the invoice has changed meanwhile.
func TestAnAnswerDuringAStopIsCommitted(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]bool{"alone": false, "with a change of the invoice": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				ctx, stop := context.WithCancel(t.Context())
				var b *env
				b = newEnv(t, address, scripted{step: func(_ context.Context, w Work) (Result, error) {
					if changes {
						after := w.Invoice
						after.Status, after.Revision = fiscal.Submitted, after.Revision+1
						b.must(b.o.Store.Commit(t.Context(), new(store.Batch).ChangeStatus(w.Invoice, after)))
					}
					stop()
					return Result{Move: &Move{Status: fiscal.Accepted, Cause: "the authority's verdict"}}, nil
				}})
				inv := b.add("A", "x", "y")
				b.RunJob(ctx, b.claimOne())
				if got := b.status(inv); got != fiscal.Accepted {
					t.Errorf("the document is %s: the answer is lost", got)
				}
			})
		})
	}
}
