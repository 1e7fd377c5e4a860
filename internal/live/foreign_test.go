package live_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The authority holds a document of another provider under our number. Whatever
// happens to our submission, ours is rejected, the range is fenced and an error is
// logged: the acceptance of the other document is not ours.
func TestForeignDocumentUnderOurNumberIsNotOurAcceptance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind  fiscal.Type
		net   int
		fault func(w *env, reception simulator.Service)
	}{
		"a 31":                              {kind: fiscal.FiscalCredit, net: 2000},
		"a 31 with the same total":          {kind: fiscal.FiscalCredit, net: 1000},
		"a 31 whose answer is lost":         {fiscal.FiscalCredit, 2000, func(w *env, s simulator.Service) { w.Rule(1, s, simulator.Action{Fault: "F02"}) }},
		"a 31 that does not arrive":         {fiscal.FiscalCredit, 2000, func(w *env, s simulator.Service) { w.Rule(1, s, simulator.Action{Fault: "F02", Store: livetest.No()}) }},
		"a large 32":                        {kind: fiscal.Consumer, net: 300_000},
		"a summary":                         {kind: fiscal.Consumer, net: 2000},
		"a summary whose answer is lost":    {fiscal.Consumer, 2000, func(w *env, s simulator.Service) { w.Rule(1, s, simulator.Action{Fault: "F02"}) }},
		"a summary that does not arrive":    {fiscal.Consumer, 2000, func(w *env, s simulator.Service) { w.Rule(1, s, simulator.Action{Fault: "F02", Store: livetest.No()}) }},
		"a 31 with a state look-up failing": {fiscal.FiscalCredit, 2000, func(w *env, _ simulator.Service) { w.Rule(3, simulator.StateLookup, simulator.Action{Fault: "F05"}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				var logged bytes.Buffer
				w.Options.Log = slog.New(slog.NewTextHandler(&logged, nil))
				w.Start()
				other := w.otherProvider()
				theirNet := 1000
				if tt.kind == fiscal.Consumer && tt.net > 250_000 {
					theirNet = 400_000
				}
				theirs := other.Create(tt.kind, theirNet)
				other.Drive(time.Hour)
				if got := other.Read(theirs).Status; got != fiscal.Accepted && got != fiscal.Delivered {
					t.Fatalf("the document of the other provider is %s", got)
				}
				if tt.fault != nil {
					service := simulator.Reception
					if tt.kind == fiscal.Consumer && tt.net < 200_000 {
						service = simulator.RFCE
					}
					tt.fault(w, service)
				}
				inv := w.Create(tt.kind, tt.net)
				w.Drive(72 * time.Hour)
				if got := w.Read(inv); got.Status != fiscal.Rejected || got.ENCF != other.Read(theirs).ENCF {
					t.Errorf("our document %s is %s: %s", got.ENCF, got.Status, w.Story(inv))
				}
				w.Refused(tt.kind)
				if !strings.Contains(logged.String(), "level=ERROR msg=\"The authority holds another document under our number.") {
					t.Errorf("no alarm was logged:\n%s", logged.String())
				}
			})
		})
	}
}

// The authority rejects a number as used although no submission but ours exists
// and none was ever lost. The document does not stay unknown for ever.
func TestDuplicateRejectionWithoutAnotherDocumentEndsRejected(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]fiscal.Type{"a 31": fiscal.FiscalCredit, "a summary": fiscal.Consumer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				service := simulator.Reception
				if kind == fiscal.Consumer {
					service = simulator.RFCE
				}
				w.Rule(1, service, simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: 2, Used: true, Messages: []simulator.Message{{Code: 135, Text: "El número de secuencia ya fue utilizado"}}}})
				inv := w.Create(kind, 1000)
				w.Drive(72 * time.Hour)
				if got := w.Read(inv).Status; got != fiscal.Rejected {
					t.Errorf("the document is %s: %s", got, w.Story(inv))
				}
				waiting, err := w.Store().WaitingDocuments(t.Context(), store.Scope{})
				if err != nil || len(waiting) > 0 {
					t.Errorf("still waiting: %+v, %v", waiting, err)
				}
			})
		})
	}
}

// The answer to a submission is lost, a look-up by number finds the document in process,
// and then the authority rejects it. The document does not stay unknown for ever. While the
// rejection cannot be confirmed, the document does not become unknown again.
func TestALostAnswerThatIsRejectedLaterEndsRejected(t *testing.T) {
	t.Parallel()
	for name, outages := range map[string]int{"look-ups answer": 0, "a look-up is out of reach at first": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(20 * time.Second) }))
				w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
				w.Rule(0, simulator.Result, simulator.Action{Fault: "F16"})
				if outages > 0 {
					w.Rule(outages, simulator.StateLookup, simulator.Action{Fault: "F05"})
				}
				inv := w.Create(fiscal.FiscalCredit, 1000)
				w.Drive(72 * time.Hour)
				w.Want(inv, "queued outcome_unknown processing rejected")
			})
		})
	}
}

// The authority gave a track id and then lost the document. Once look-ups have shown
// that it has none, the same bytes are sent again.
func TestDocumentThatTheAuthorityLostIsSentAgain(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		for _, service := range []simulator.Service{simulator.Result, simulator.TrackIDs, simulator.StateLookup} {
			w.Rule(0, service, simulator.Action{Fault: "F12"}) // not found
		}
		inv := w.Create(fiscal.FiscalCredit, 1000)
		for range 12 {
			w.Drive(time.Hour)
			if attempts, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID); err != nil || len(attempts) > 1 {
				w.Must(err)
				break
			}
			w.Clock.Advance(time.Hour)
		}
		w.Sim.ClearRules()
		w.Drive(12 * time.Hour)
		if got := w.Read(inv); got.Status != fiscal.Accepted {
			t.Errorf("the document is %s: %s", got.Status, w.Story(inv))
		}
		if attempts, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID); err != nil || len(attempts) < 2 {
			t.Errorf("sent %d times, want again after the loss (%v)", len(attempts), err)
		}
	})
}
