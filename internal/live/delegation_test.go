package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A signer who is not delegated: the taxpayer's sending pauses, creations say
// why, no document fails, and all goes on once it is mended.
func TestDelegation(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Must(w.Sim.UpdateTaxpayer(livetest.IssuerRNC, func(s *simulator.Taxpayer) error { s.Delegates = nil; return nil }))
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		missing, err := w.Plan.Ready(t.Context(), w.Scope, fiscal.FiscalCredit)
		if err != nil || len(missing) != 1 || missing[0].Code != "dgii.delegation_rejected" || missing[0].Field != "dgii" {
			t.Errorf("missing %v, %v", missing, err)
		}
		w.Drive(10 * time.Minute)
		w.Want(inv, "queued")
		w.Must(w.Sim.UpdateTaxpayer(livetest.IssuerRNC, func(s *simulator.Taxpayer) error {
			s.Delegates = simulator.Baseline(livetest.IssuerRNC, livetest.Holder, "").Delegates
			return nil
		}))
		w.Drive(2 * time.Hour)
		w.Want(inv, "queued submitted accepted")
		if missing, err := w.Plan.Ready(t.Context(), w.Scope, fiscal.FiscalCredit); err != nil || len(missing) > 0 {
			t.Errorf("missing %v, %v", missing, err)
		}
		w.Clean()
	})
}
