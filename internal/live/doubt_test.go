package live_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// rejections are the ways in which the authority rejects the second copy of a document.
func rejections() map[string]simulator.Verdict {
	remark := simulator.Message{Code: 1385, Text: "El campo RNCComprador no es válido."}
	rejected := func(used bool, messages ...simulator.Message) simulator.Verdict {
		return simulator.Verdict{Code: 2, Used: used, Messages: messages}
	}
	return map[string]simulator.Verdict{
		"135":                    rejected(true, simulator.Message{Code: 135, Text: "Número de secuencia no autorizada."}),
		"135 beside a remark":    rejected(true, remark, simulator.Message{Code: 135, Text: "Número de secuencia no autorizada."}),
		"135, and free":          rejected(false, simulator.Message{Code: 135, Text: "Número de secuencia no autorizada."}),
		"1209":                   rejected(true, simulator.Message{Code: 1209, Text: "x"}),
		"75":                     rejected(true, simulator.Message{Code: 75, Text: "Número de secuencia no autorizada."}),
		"145":                    rejected(false, simulator.Message{Code: 145, Text: "El campo FechaVencimientoSecuencia no es válido."}),
		"used, in words":         rejected(true, remark, simulator.Message{Code: 9, Text: "El e-NCF ya fue UTILIZADO"}),
		"another reason":         rejected(true, simulator.Message{Code: 176, Text: "El campo IndicadorMontoGravado no es válido."}),
		"no reason":              rejected(true),
		"no reason, number free": rejected(false),
	}
}

// numberAfter is what a final rejection says about the number.
func numberAfter(v simulator.Verdict) store.NumberState {
	if v.Used {
		return store.NumberUsed
	}
	return store.NumberReusable
}

// A doubt is a document whose first answer is lost and whose second copy is rejected.
type doubt struct {
	*env
	inv       store.Invoice
	reception simulator.Service
}

func (d *doubt) rejectsTheSecond(v simulator.Verdict) {
	d.Rule(1, d.reception, simulator.Action{Fault: "F17", Verdict: &v})
}

// hide keeps every look-up by number from finding anything.
func (d *doubt) hide() {
	for _, service := range []simulator.Service{simulator.TrackIDs, simulator.StateLookup, simulator.RFCELookup} {
		d.Rule(0, service, simulator.Action{Fault: "F12"})
	}
}

func (d *doubt) send() {
	kind := fiscal.FiscalCredit
	if d.reception == simulator.RFCE {
		kind = fiscal.Consumer
	}
	d.inv = d.Create(kind, 1000)
}

// unknown asserts that the document has no verdict, that operators see it, that its number
// is not free, and that a worker looks it up again.
func (d *doubt) unknown() {
	d.T.Helper()
	if got := d.Read(d.inv).Status; got != fiscal.OutcomeUnknown {
		d.T.Fatalf("the document is %s: %s", got, d.Story(d.inv))
	}
	waiting, err := d.Store().WaitingDocuments(d.T.Context(), d.Scope)
	if err != nil || len(waiting) != 1 || waiting[0].Job == nil || waiting[0].Job.Stage != live.StageReconcile {
		d.T.Errorf("waiting: %+v, %v", waiting, err)
	}
	wantNumber(store.NumberIssued)(d.T, d.env, d.inv)
}

// everyDoubt runs a test for both ways to the authority and for every rejection, one of
// them on every engine.
func everyDoubt(t *testing.T, amb string, test func(*testing.T, *doubt, simulator.Verdict)) {
	t.Helper()
	for kind, reception := range map[string]simulator.Service{"31": simulator.Reception, "summary": simulator.RFCE} {
		for reason, verdict := range rejections() {
			for _, engine := range storetest.Engines() {
				if engine != "sqlite" && reason != "145" {
					continue
				}
				t.Run(kind+" "+reason+" "+engine, func(t *testing.T) {
					t.Parallel()
					test(t, &doubt{env: newEnv(t, storetest.Address(t, engine), envOptions{Amb: amb}), reception: reception}, verdict)
				})
			}
		}
	}
}

// The authority accepted the first copy, its answer is lost, and look-ups find nothing for
// hours. The rejection of the second copy is not final, whatever its reason, and there is no
// third one. When a look-up shows the document, it is accepted.
func TestARejectedCopyDoesNotRejectAnAcceptedDocument(t *testing.T) {
	t.Parallel()
	everyDoubt(t, "ecf", func(t *testing.T, d *doubt, v simulator.Verdict) {
		d.Rule(1, d.reception, simulator.Action{Fault: "F02"})
		d.rejectsTheSecond(v)
		d.hide()
		d.send()
		d.Drive(6 * time.Hour)
		d.unknown()
		wantPosts(2)(t, d.env, d.inv)
		d.Sim.ClearRules()
		d.Clock.Advance(time.Hour)
		d.Drive(2 * time.Hour)
		if got := d.Read(d.inv).Status; got != fiscal.Accepted {
			t.Errorf("the document is %s: %s", got, d.Story(d.inv))
		}
		wantPosts(2)(t, d.env, d.inv)
		wantNumber(store.NumberUsed)(t, d.env, d.inv)
		d.Clean()
	})
}

// The first copy never arrived, and the second one is rejected. The rejection is final when
// a look-up shows our security code as rejected, and not before.
func TestALookUpConfirmsTheRejectionOfACopy(t *testing.T) {
	t.Parallel()
	everyDoubt(t, "ecf", func(t *testing.T, d *doubt, v simulator.Verdict) {
		d.Rule(1, d.reception, simulator.Action{Fault: "F02", Store: livetest.No()})
		d.rejectsTheSecond(v)
		d.send()
		d.Drive(10 * time.Minute)
		d.unknown()
		d.Drive(2 * time.Hour)
		if got := d.Read(d.inv).Status; got != fiscal.Rejected {
			t.Fatalf("the document is %s: %s", got, d.Story(d.inv))
		}
		wantPosts(2)(t, d.env, d.inv)
		wantNumber(numberAfter(v))(t, d.env, d.inv)
		d.foldsToStatus()
	})
}

// Both copies are at the authority, which rejected both.
func TestALookUpConfirmsTheRejectionOfBothCopies(t *testing.T) {
	t.Parallel()
	everyDoubt(t, "ecf", func(t *testing.T, d *doubt, v simulator.Verdict) {
		d.Rule(1, d.reception, simulator.Action{Fault: "F02"})
		d.rejectsTheSecond(v)
		d.hide()
		d.send()
		d.Drive(time.Hour)
		d.unknown()
		for _, one := range d.Sim.Documents(simulator.Filter{}) {
			d.Must(d.Sim.ForceVerdict(one.ID, v))
		}
		d.Sim.ClearRules()
		d.Clock.Advance(time.Hour)
		d.Drive(3 * time.Hour)
		if got := d.Read(d.inv).Status; got != fiscal.Rejected {
			t.Fatalf("the document is %s: %s", got, d.Story(d.inv))
		}
		wantNumber(numberAfter(v))(t, d.env, d.inv)
		d.foldsToStatus()
	})
}

// foldsToStatus asserts that the stored evidence alone gives the status.
func (d *doubt) foldsToStatus() {
	d.T.Helper()
	known, err := livetest.ReadEvidence(d.T.Context(), d.Store(), d.Scope, d.inv.DocumentID)
	d.Must(err)
	if got, want := evidence.Fold(known).Status, d.Read(d.inv).Status; got != want {
		d.T.Errorf("the document is %s, and its evidence comes to %s: %+v", want, got, known)
	}
}

// Where no look-up exists, only an operator ends the doubt.
func TestWithoutLookUpsAnOperatorEndsTheDoubt(t *testing.T) {
	t.Parallel()
	everyDoubt(t, "certecf", func(t *testing.T, d *doubt, v simulator.Verdict) {
		d.Rule(1, d.reception, simulator.Action{Fault: "F02"})
		d.rejectsTheSecond(v)
		d.hide() // what certification has of them
		d.send()
		d.Drive(48 * time.Hour)
		d.unknown()
		wantPosts(2)(t, d.env, d.inv)
		verdict := fiscal.VerdictAccepted
		if len(v.Messages) == 1 {
			verdict = fiscal.VerdictRejected
		}
		after, err := d.resolve(d.inv, verdict, "portal")
		if err != nil || !after.Status.Final() {
			t.Errorf("decided: %s, %v", after.Status, err)
		}
		wantNumber(store.NumberUsed)(t, d.env, d.inv)
	})
}

// The authority gave a track id, lost the document, and rejects the second copy.
func TestARejectedCopyDoesNotRejectALostDocument(t *testing.T) {
	t.Parallel()
	for reason, verdict := range rejections() {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			d := &doubt{env: newEnv(t, storetest.Address(t, "sqlite"), envOptions{}), reception: simulator.Reception}
			d.Rule(1, d.reception, simulator.Action{Fault: "F12", Delay: simulator.Duration(12 * time.Hour)})
			d.rejectsTheSecond(verdict)
			for _, service := range []simulator.Service{simulator.TrackIDs, simulator.StateLookup} {
				d.Rule(0, service, simulator.Action{Fault: "F12"})
			}
			d.send()
			d.Drive(8 * time.Hour)
			d.unknown()
			wantPosts(2)(t, d.env, d.inv)
			d.Sim.ClearRules()
			d.Clock.Advance(8 * time.Hour)
			d.Drive(2 * time.Hour)
			if got := d.Read(d.inv).Status; got != fiscal.Accepted {
				t.Errorf("the document is %s: %s", got, d.Story(d.inv))
			}
		})
	}
}

// Without an attempt in doubt, a rejection is final at once.
func TestAPlainRejectionIsFinalAtOnce(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"145", "another reason", "no reason", "no reason, number free", "135, and free"} {
		for kind, reception := range map[string]simulator.Service{"queued submitted rejected": simulator.Reception, "queued rejected": simulator.RFCE} {
			t.Run(kind+" "+reason, func(t *testing.T) {
				t.Parallel()
				d := &doubt{env: newEnv(t, storetest.Address(t, "sqlite"), envOptions{}), reception: reception}
				verdict := rejections()[reason]
				d.rejectsTheSecond(verdict) // there is no second one
				d.send()
				d.Drive(5 * time.Second)
				d.Want(d.inv, kind)
				wantNumber(numberAfter(verdict))(t, d.env, d.inv)
			})
		}
	}
}

// A worker was taken for dead, and its attempt for one without an answer. Its answer comes
// late, and is the answer to that attempt: nothing is in doubt.
func TestALateAnswerEndsTheDoubtAboutItsAttempt(t *testing.T) {
	t.Parallel()
	late := evidence.Item{Kind: evidence.Verdict, Attempt: 1, Verdict: fiscal.VerdictRejected, NumberFree: true}
	open := evidence.Item{Kind: evidence.Inconclusive, Attempt: 1}
	for _, known := range [][]evidence.Item{{open, late}, {late, open}} {
		if got := evidence.Fold(known); got.Status != fiscal.Rejected || !got.NumberFree {
			t.Errorf("%+v", got)
		}
	}
	other := late
	other.Attempt = 2
	if got := evidence.Fold([]evidence.Item{open, other}); got.Status != fiscal.OutcomeUnknown {
		t.Errorf("the answer to another attempt: %+v", got)
	}
	if known := evidence.Submissions([]evidence.Item{open, late}); !slices.Equal([]evidence.Kind{known[0].Kind}, []evidence.Kind{evidence.Inconclusive}) {
		t.Errorf("%+v", known)
	}
}
