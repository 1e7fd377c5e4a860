package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The answer to a summary is lost, and the authority's look-ups do not show the summary
// for hours. It is sent again, and the authority says that the number is used. Then it is
// not sent a third time: what the look-ups say and what the authority said contradict
// each other.
func TestAUsedNumberIsNotSentOverAndOver(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Rule(1, simulator.RFCE, simulator.Action{Fault: "F02"})
		for _, service := range []simulator.Service{simulator.RFCELookup, simulator.StateLookup} {
			w.Rule(0, service, simulator.Action{Fault: "F12"}) // not found
		}
		inv := w.Create(fiscal.Consumer, 1000)
		w.Drive(3 * time.Hour)
		w.Want(inv, "queued outcome_unknown")
		wantPosts(2)(t, w, inv)
		w.Sim.ClearRules()
		w.Clock.Advance(time.Hour)
		w.Drive(2 * time.Hour)
		w.Want(inv, "queued outcome_unknown accepted")
		w.Clean()
	})
}

// Where no look-up by number exists, the authority gave a track id and lost the document.
// The document is sent once more.
func TestALostDocumentIsSentAgainWithoutLookUps(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Amb: "certecf"})
		_, err := w.Sim.AddRule(simulator.Rule{
			Match: simulator.Match{Service: simulator.Reception, Attempt: 1}, Action: simulator.Action{Fault: "F12"}, Count: 1, // the track id is never found
		})
		w.Must(err)
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(48 * time.Hour)
		attempts, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID)
		if err != nil || len(attempts) != 2 {
			t.Errorf("sent %d times, want once more after the loss (%v): %s", len(attempts), err, w.Story(inv))
		}
	})
}

// Where no look-up by number exists, a document was lost twice. The operator has seen
// that the authority does not have it, and sends it again: neither verdict would be true.
func TestAnOperatorSendsAgainWithoutLookUps(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Amb: "certecf"})
		w.Rule(2, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(48 * time.Hour)
		w.Want(inv, "queued outcome_unknown")
		_, err := w.Resolver().Resend(t.Context(), w.Scope, inv.DocumentID, "the portal has no such document")
		w.Must(err)
		w.Drive(time.Hour)
		w.Want(inv, "queued outcome_unknown submitted accepted")
		waiting, err := w.Store().WaitingDocuments(t.Context(), store.Scope{})
		if err != nil || len(waiting) > 0 {
			t.Errorf("still waiting: %+v, %v", waiting, err)
		}
	})
}
