package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A suspension refuses new requests. A document that was acknowledged before goes on to
// its verdict.
func TestADocumentOfASuspendedTaxpayerGoesOn(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
			for _, subject := range []store.Subject{store.TaxpayerSubject(w.Scope.TaxpayerID), store.EnvironmentSubject(w.Scope.Environment)} {
				if err := tx.Suspend(t.Context(), store.Suspension{Subject: subject, At: w.Now()}); err != nil {
					return err
				}
			}
			return nil
		}))
		w.Drive(time.Hour)
		w.Want(inv, "queued submitted accepted")
		w.Clean()
	})
}
