package live_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Every exchange of a delivery with the buyer's receiver (seed, token, document) fails
// once: before the receiver has read it, or after, so that its answer is lost. The buyer
// gets the document, its acknowledgement is recorded once, and no event is emitted twice.
func TestEveryFaultOfADelivery(t *testing.T) {
	t.Parallel()
	stored := true
	faults := map[string]simulator.Action{
		"drops the connection before it reads":   {Fault: "F03"},
		"drops the connection while it reads":    {Fault: "F04"},
		"answers 503 and did nothing":            {Fault: "F05"},
		"answers 503 after it did its work":      {Fault: "F05", Store: &stored},
		"drops the connection after its work":    {Fault: "F02"},
		"answers with half of a response":        {Fault: "F06", Variant: "truncated"},
		"answers with a page after its work":     {Fault: "F06"},
		"answers 401":                            {Fault: "F09"},
		"answers that it has too many requests":  {Fault: "F10"},
		"answers 500 (of the receiver's making)": {Fault: "peer", Variant: "500"},
	}
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		w.Must(w.Sim.UpdateTaxpayer(livetest.BuyerRNC, func(b *simulator.Taxpayer) error { b.Receiver.RequireToken = true; return nil }))
		for _, service := range []simulator.Service{simulator.PeerReception, simulator.PeerSeed, simulator.PeerToken} {
			if service != simulator.PeerReception && strings.HasPrefix(address, "postgres:") {
				break // the exchanges are the same on every engine
			}
			for name, fault := range faults {
				if fault.Fault == "peer" && service != simulator.PeerReception {
					continue
				}
				w.Clock.Advance(2 * time.Hour) // the tokens are over
				w.Sim.ClearRules()
				w.Rule(1, service, fault)
				inv := w.Create(fiscal.FiscalCredit, 1000)
				w.Drive(24 * time.Hour)
				what := fmt.Sprintf("%s %s", service, name)
				if fired := w.Sim.Rules()[0].Fired; fired != 1 {
					t.Errorf("%s: the fault happened %d times", what, fired)
				}
				w.wantDelivered(what, inv)
			}
		}
		w.Audit()
	})
}

// wantDelivered asserts that the buyer has exactly our bytes, and that the receipt is
// known once.
func (w *env) wantDelivered(what string, inv store.Invoice) {
	w.T.Helper()
	if got := w.Story(inv); got != "queued submitted accepted delivered" {
		w.T.Errorf("%s: %s", what, got)
	}
	issued, err := w.Store().IssuedDocument(w.T.Context(), w.Scope, inv.DocumentID)
	w.Must(err)
	found := false
	for _, d := range w.Sim.Deliveries(livetest.BuyerRNC) {
		if d.Key == issued.RNC+issued.ENCF {
			found = d.SHA256 == hex.EncodeToString(issued.XMLDigest)
		}
	}
	if !found {
		w.T.Errorf("%s: the buyer does not have our bytes", what)
	}
	known, err := livetest.ReadEvidence(w.T.Context(), w.Store(), w.Scope, inv.DocumentID)
	w.Must(err)
	receipts := 0
	for _, i := range known {
		if i.Kind == evidence.Receipt {
			receipts++
		}
		if i.Kind == evidence.DeliveryFailed {
			w.T.Errorf("%s: the delivery counts as failed: %s", what, i.Note)
		}
	}
	if receipts != 1 {
		w.T.Errorf("%s: %d receipts, want one", what, receipts)
	}
	if _, err := w.Store().JobOf(w.T.Context(), w.Scope, inv.DocumentID); err == nil {
		w.T.Errorf("%s: a job is left", what)
	}
}
