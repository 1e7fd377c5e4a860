package live

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A signer who is not delegated: the taxpayer's sending pauses, creations say
// why, no document fails, and all goes on once it is mended.
func TestDelegation(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.must(w.sim.UpdateTaxpayer(issuerRNC, func(s *simulator.Taxpayer) error { s.Delegates = nil; return nil }))
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		missing, err := w.plan.Ready(t.Context(), w.scope, fiscal.FiscalCredit)
		if err != nil || len(missing) != 1 || missing[0].Code != "dgii.delegation_rejected" || missing[0].Field != "dgii" {
			t.Errorf("missing %v, %v", missing, err)
		}
		w.drive(10 * time.Minute)
		w.want(inv, "queued")
		w.must(w.sim.UpdateTaxpayer(issuerRNC, func(s *simulator.Taxpayer) error {
			s.Delegates = simulator.Baseline(issuerRNC, holder, "").Delegates
			return nil
		}))
		w.drive(2 * time.Hour)
		w.want(inv, "queued submitted accepted")
		if missing, err := w.plan.Ready(t.Context(), w.scope, fiscal.FiscalCredit); err != nil || len(missing) > 0 {
			t.Errorf("missing %v, %v", missing, err)
		}
		w.clean()
	})
}
