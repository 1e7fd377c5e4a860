package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// newFullCertecf returns an env whose certecf offers the services that the documentation
// says it lacks.
func newFullCertecf(t *testing.T, address string) *env {
	t.Helper()
	w := newEnv(t, address, envOptions{Amb: "certecf", Receiver: true})
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.CertECFFull = true }))
	return w
}

// A page of HTTP 404 is no proof that certecf has no directory, also for a process that has
// not seen it answer: the buyer gets the document.
func TestOnePageEndsNoDelivery(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newFullCertecf(t, address)
		w.Rule(1, simulator.Directory, simulator.Action{Fault: "F07", Status: 404})
		first := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		w.wantDelivered("the first question got a page", first)

		w.Clock.Advance(2 * live.EndpointTime) // the directory is asked again
		w.Rule(4, simulator.Directory, simulator.Action{Fault: "F07", Status: 404})
		second := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(24 * time.Hour)
		w.wantDelivered("the directory has answered before", second)
		w.Clean()
	})
}

// Where no directory exists, the delivery ends, and the document stays accepted.
func TestADeliveryEndsWithoutADirectory(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{Amb: "certecf", Receiver: true})
	for range 2 {
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		w.Want(inv, "queued submitted accepted")
		if _, err := w.Store().JobOf(t.Context(), w.Scope, inv.DocumentID); err == nil {
			t.Error("a job is left")
		}
	}
}

// The document is not sent again because one look-up got a page of HTTP 404, although
// the documentation says that certecf has none.
func TestOnePageIsNoReasonToSendAgain(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newFullCertecf(t, address)
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		w.Rule(live.BlindRound-1, simulator.TrackIDs, simulator.Action{Fault: "F05"})
		for _, service := range []simulator.Service{simulator.TrackIDs, simulator.StateLookup} {
			w.Rule(1, service, simulator.Action{Fault: "F07", Status: 404})
		}
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(48 * time.Hour)
		if got := w.Read(inv).Status; got != fiscal.Delivered {
			t.Errorf("the document is %s", got)
		}
		wantPosts(1)(t, w, inv)
		w.Clean()
	})
}
