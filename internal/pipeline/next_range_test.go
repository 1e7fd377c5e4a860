package pipeline_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A range comes to its end in the middle of a burst.
func TestDocumentsWaitForANewNumberRange(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := livetest.New(t, address, livetest.Options{})
		ctx := t.Context()
		all, err := w.Store().NumberRangesOf(ctx, w.Scope, fiscal.FiscalCredit)
		w.Must(err)
		w.Must(storetest.TakeNumbers(ctx, w.Store(), all[0], 997))
		var made []store.Invoice
		for range 5 {
			made = append(made, w.Create(fiscal.FiscalCredit, 1000))
		}
		w.Drive(time.Minute)
		numbered := 0
		for _, inv := range made {
			if w.Read(inv).ENCF != "" {
				numbered++
			}
		}
		if numbered != 3 {
			t.Errorf("%d documents are numbered, want the 3 that were left", numbered)
		}
		missing, err := w.Plan.Ready(ctx, w.Scope, fiscal.FiscalCredit)
		if err != nil || len(missing) != 1 || missing[0].Code != "sequence.exhausted" {
			t.Errorf("missing %v, %v", missing, err)
		}
		w.Must(w.Store().Update(ctx, func(tx *store.Tx) error {
			return tx.AddNumberRange(ctx, store.NumberRange{Scope: w.Scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 5001, Last: 6000, Next: 5001, Expires: all[0].Expires, CreatedAt: w.Now()})
		}))
		w.Drive(time.Hour)
		for _, inv := range made {
			w.Want(inv, "queued submitted accepted")
		}
		w.Clean()
	})
}
