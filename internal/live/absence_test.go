package live

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// newFullCertecf returns an env whose certecf offers the services that the documentation
// says it lacks.
func newFullCertecf(t *testing.T, address string) *env {
	t.Helper()
	w := newEnv(t, address, envOptions{amb: "certecf", receiver: true})
	w.must(w.sim.Configure(func(c *simulator.Config) { c.CertECFFull = true }))
	return w
}

// A page of HTTP 404 is no proof that certecf has no directory, also for a process that has
// not seen it answer: the buyer gets the document.
func TestOnePageEndsNoDelivery(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newFullCertecf(t, address)
		w.rule(1, simulator.Directory, simulator.Action{Fault: "F07", Status: 404})
		first := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		w.wantDelivered("the first question got a page", first)

		w.clock.Advance(2 * endpointTime) // the directory is asked again
		w.rule(4, simulator.Directory, simulator.Action{Fault: "F07", Status: 404})
		second := w.create(fiscal.FiscalCredit, 1000)
		w.drive(24 * time.Hour)
		w.wantDelivered("the directory has answered before", second)
		w.clean()
	})
}

// Where no directory exists, the delivery ends, and the document stays accepted.
func TestADeliveryEndsWithoutADirectory(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{amb: "certecf", receiver: true})
	for range 2 {
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		w.want(inv, "queued submitted accepted")
		if _, err := w.store().JobOf(t.Context(), w.scope, inv.DocumentID); err == nil {
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
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		w.rule(blindRound-1, simulator.TrackIDs, simulator.Action{Fault: "F05"})
		for _, service := range []simulator.Service{simulator.TrackIDs, simulator.StateLookup} {
			w.rule(1, service, simulator.Action{Fault: "F07", Status: 404})
		}
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(48 * time.Hour)
		if got := w.read(inv).Status; got != fiscal.Delivered {
			t.Errorf("the document is %s", got)
		}
		wantPosts(1)(t, w, inv)
		w.clean()
	})
}
