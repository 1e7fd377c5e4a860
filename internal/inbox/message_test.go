package inbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The buyer rejects what the authority has accepted: the status stays, the integrator
// gets one event, and the first response stands. A response that contradicts it is an
// event that says so.
func TestCommercialRejectionIsRecorded(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		before := w.Read(inv)
		for range 2 { // the same again has no effect
			w.Must(w.Approve(w.Respond(inv, livetest.Rejected("no pedido"))))
		}
		for range 2 {
			w.Must(w.Approve(w.Respond(inv, nil))) // the other way round
		}
		after := w.Read(inv)
		if after.Status != fiscal.Delivered || after.Revision != before.Revision || !after.UpdatedAt.After(before.UpdatedAt) ||
			!slices.Equal(after.Messages, append(before.Messages, "Rechazo comercial: no pedido", "Aprobación comercial posterior que contradice el rechazo")) {
			t.Errorf("%+v", after)
		}
		events := slices.DeleteFunc(w.Feed(), func(e livetest.Emitted) bool { return e.Type != event.CommercialResponse })
		if len(events) != 2 {
			t.Fatalf("events %+v", events)
		}
		first, second := events[0].Data, events[1].Data
		if first.Result != "rejected" || first.Reason != "no pedido" || first.PreviousStatus != "" || first.Status != fiscal.Delivered ||
			first.Sequence != before.Revision || first.Signer != livetest.BuyerSigner || first.Contradicts != "" {
			t.Errorf("the first is %+v", first)
		}
		if second.Result != "accepted" || second.Signer != livetest.BuyerSigner || second.Contradicts != "rejected" {
			t.Errorf("the second is %+v", second)
		}
		known, err := livetest.ReadEvidence(t.Context(), w.Store(), w.Scope, inv.DocumentID)
		w.Must(err)
		known = slices.DeleteFunc(known, func(e evidence.Item) bool { return e.Kind != evidence.Commercial })
		if len(known) != 2 || known[0].Verdict != fiscal.VerdictRejected || known[0].Signer != livetest.BuyerSigner || !known[0].Confirmed {
			t.Errorf("kept %+v", known)
		}
		w.Clean()
	})
}

// What does not belong to one of our documents has no effect.
func TestCommercialResponseMustMatchTheDocument(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		credit, consumer := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 300_000)
		w.Drive(time.Hour)
		submitted := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		for name, c := range map[string]struct {
			inv    store.Invoice
			change func(*simulator.Push)
			want   error
		}{
			"another total":        {credit, func(p *simulator.Push) { p.Total = "1180.01" }, reply.ErrMismatch},
			"another day":          {credit, func(p *simulator.Push) { p.Issued = "13-11-2026" }, reply.ErrMismatch},
			"another number":       {credit, func(p *simulator.Push) { p.ENCF = "E310000009999" }, reply.ErrNoDocument},
			"another issuer":       {credit, func(p *simulator.Push) { p.Issuer = "101000001" }, reply.ErrNoDocument},
			"of a consumer":        {consumer, nil, reply.ErrMismatch},
			"before the authority": {submitted, nil, reply.ErrMismatch},
		} {
			if err := w.Approve(w.Respond(c.inv, c.change)); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		for _, e := range w.Feed() {
			if e.Type == event.CommercialResponse {
				t.Errorf("events %+v", e)
			}
		}
	})
}

// Of many responses that arrive at once, while workers move the document, one emits an
// event.
func TestConcurrentCommercialResponses(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		w.Rule(1, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "500"})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(30 * time.Second) // accepted, and the buyer does not answer
		xml := w.Respond(inv, nil)
		var busy sync.WaitGroup
		for range 8 {
			busy.Go(func() {
				if err := w.Approve(xml); err != nil {
					t.Error(err)
				}
			})
		}
		busy.Go(func() { w.Drive(time.Hour) })
		busy.Wait()
		w.Drive(time.Hour) // now the buyer has acknowledged it, so that the signer is known
		_, err := w.Inbox.ApplyConfirmed(t.Context())
		w.Must(err)
		if got := w.Read(inv); got.Status != fiscal.Delivered || !slices.Equal(got.Messages, []string{"Aprobación comercial"}) {
			t.Errorf("%+v", got)
		}
		responses := slices.DeleteFunc(w.Feed(), func(e livetest.Emitted) bool { return e.Type != event.CommercialResponse })
		if len(responses) != 1 || responses[0].Data.Result != "accepted" {
			t.Errorf("events %+v", responses)
		}
		w.Clean()
	})
}

// A relay passes on what buyers have signed: it has an effect once, and nothing
// that does not belong to the relay's taxpayer has any.
func TestReceiveInboundMessages(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		inv, other := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.FiscalCredit, 2000)
		w.Drive(time.Hour)
		inv, other = w.Read(inv), w.Read(other)
		source := store.Source{Scope: w.Scope, ID: store.NewID(), Kinds: []string{event.InboundReceipt, event.InboundCommercial}, Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateSource(t.Context(), source) }))
		stranger := source
		stranger.TaxpayerID = store.NewID()

		buyer, err := w.Sim.Identity(livetest.BuyerSigner)
		w.Must(err)
		receipt := func(a reply.Acknowledgement) []byte {
			a.IssuerRNC, a.BuyerRNC, a.At = livetest.IssuerRNC, livetest.BuyerRNC, w.Now()
			if a.ENCF == "" {
				a.ENCF = inv.ENCF
			}
			xml, err := reply.Acknowledge(buyer, a)
			w.Must(err)
			return xml
		}
		n := 0
		hear := func(change func(*inbox.Message)) (inbox.Received, error) {
			n++
			in := inbox.Message{Source: source, MessageID: fmt.Sprint("msg_", n), Kind: event.InboundReceipt, ENCF: inv.ENCF, XML: receipt(reply.Acknowledgement{Received: true})}
			change(&in)
			return w.Inbox.Receive(t.Context(), in)
		}
		for _, tt := range []struct {
			name, field string
			change      func(*inbox.Message)
		}{
			{"another number", "data.encf", func(in *inbox.Message) { in.ENCF = other.ENCF }},
			{"an unknown kind", "type", func(in *inbox.Message) { in.Kind = strings.Repeat("ecf.unheard_of", 1000) }},
			{"not its kind", "data.xml_base64", func(in *inbox.Message) { in.Kind = event.InboundCommercial }},
			{"not allowed", "type", func(in *inbox.Message) { in.Source.Kinds = []string{event.InboundCommercial} }},
			{"altered", "data.xml_base64", func(in *inbox.Message) {
				in.XML = slices.Concat(in.XML[:len(in.XML)/2], []byte("x"), in.XML[len(in.XML)/2:])
			}},
			{"not XML", "data.xml_base64", func(in *inbox.Message) { in.XML = []byte("received") }},
			{"another buyer", "data.xml_base64", func(in *inbox.Message) { in.XML = w.ReceiptOf(t, inv.ENCF, "131000001") }},
			{"no XML", "data.xml_base64", func(in *inbox.Message) { in.XML = nil }},
		} {
			var invalid *inbox.InvalidMessageError
			_, err := hear(tt.change)
			if !errors.As(err, &invalid) || invalid.Problem.Field != tt.field {
				t.Errorf("%s: %v, want a problem of %s", tt.name, err, tt.field)
			} else if len(invalid.Error()) > 500 {
				t.Errorf("%s: the message repeats a long value: %.80s…", tt.name, invalid)
			}
		}
		for name, change := range map[string]func(*inbox.Message){
			"of another taxpayer's": func(in *inbox.Message) { in.Source = stranger },
			"of nobody's": func(in *inbox.Message) {
				in.ENCF, in.XML = "E310000009999", receipt(reply.Acknowledgement{ENCF: "E310000009999", Received: true})
			},
		} {
			if got, err := hear(change); err != nil || got.Duplicate || got.EventID == "" {
				t.Errorf("%s: %+v, %v; want it kept, as if it were ours", name, got, err)
			}
		}
		w.Want(inv, "queued submitted accepted")

		// A refusal emits an event and the status stays; a later receipt counts.
		if _, err := hear(func(in *inbox.Message) { in.XML = receipt(reply.Acknowledgement{Reason: reply.ReasonBuyer}) }); err != nil {
			t.Error(err)
		}
		w.Want(inv, "queued submitted accepted")
		first, err := hear(func(in *inbox.Message) { in.MessageID = "same" })
		again, errAgain := hear(func(in *inbox.Message) { in.MessageID = "same" })
		if err != nil || errAgain != nil || first.Duplicate || !again.Duplicate || first.EventID != again.EventID {
			t.Errorf("%+v, %v and again %+v, %v", first, err, again, errAgain)
		}
		w.Want(inv, "queued submitted accepted delivered")
		if _, err := hear(func(in *inbox.Message) { in.Kind, in.XML = event.InboundCommercial, w.Respond(inv, nil) }); err != nil {
			t.Error(err)
		}
		want := "fiscal_document.submitted fiscal_document.accepted fiscal_document.artifacts_ready fiscal_document.delivery_failed fiscal_document.delivered fiscal_document.commercial_response_unconfirmed"
		if got := w.Kinds(inv); got != want {
			t.Errorf("events %s", got)
		}
		w.Want(other, "queued submitted accepted")
		w.Drive(time.Hour)
		w.Clean()
	})
}

// An earlier release has stored the refusal as a sentence. The same one again has no effect.
func TestARefusalThatAnEarlierReleaseHasStoredIsKnown(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		inv = w.Read(inv)
		old := pipeline.Finding{Item: evidence.Item{
			Kind: evidence.DeliveryFailed, Note: "the buyer refused it, reason " + reply.ReasonBuyer, Signer: livetest.BuyerSigner, At: w.Now(),
		}}
		row, err := old.Row(w.Scope, inv.DocumentID)
		w.Must(err)
		w.Must(w.Store().Commit(t.Context(), new(store.Batch).AddEvidence(row)))
		source := store.Source{Scope: w.Scope, ID: store.NewID(), Kinds: event.InboundKinds(), Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateSource(t.Context(), source) }))
		buyer, err := w.Sim.Identity(livetest.BuyerSigner)
		w.Must(err)
		xml, err := reply.Acknowledge(buyer, reply.Acknowledgement{IssuerRNC: livetest.IssuerRNC, BuyerRNC: livetest.BuyerRNC, ENCF: inv.ENCF, Reason: reply.ReasonBuyer, At: w.Now()})
		w.Must(err)
		_, err = w.Inbox.Receive(t.Context(), inbox.Message{Source: source, MessageID: "m", Kind: event.InboundReceipt, ENCF: inv.ENCF, XML: xml})
		w.Must(err)
		if got := w.Kinds(inv); strings.Contains(got, event.DeliveryFailed) {
			t.Errorf("events %s", got)
		}
	})
}

// A message that came before its document is judged by the moment when it came, even if
// the certificate of its signer has expired meanwhile.
func TestAParkedMessageOutlivesItsCertificate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	ranges, err := w.Store().NumberRangesOf(t.Context(), w.Scope, fiscal.FiscalCredit)
	w.Must(err)
	encf, err := fiscal.NewENCF(fiscal.FiscalCredit, ranges[0].Next)
	w.Must(err)
	source := store.Source{Scope: w.Scope, ID: store.NewID(), Kinds: event.InboundKinds(), Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
	w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateSource(t.Context(), source) }))
	file, err := w.Sim.IssueCertificate(simulator.CertificateRequest{Holder: livetest.BuyerSigner, Days: 10})
	w.Must(err)
	buyer, err := xmlsig.OpenP12(file.P12, file.Password)
	w.Must(err)
	xml, err := reply.Acknowledge(buyer, reply.Acknowledgement{IssuerRNC: livetest.IssuerRNC, BuyerRNC: livetest.BuyerRNC, ENCF: encf.String(), Received: true, At: w.Now()})
	w.Must(err)
	in := inbox.Message{Source: source, MessageID: "m", Kind: event.InboundReceipt, ENCF: encf.String(), XML: xml}
	if _, err := w.Inbox.Receive(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(20 * 24 * time.Hour)
	in.MessageID = "late"
	var invalid *inbox.InvalidMessageError
	if _, err := w.Inbox.Receive(t.Context(), in); !errors.As(err, &invalid) {
		t.Errorf("a message of today: %v", err)
	}
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(time.Hour)
	w.Must(w.Inbox.ApplyParked(t.Context()))
	w.Want(inv, "queued submitted accepted delivered")
}
