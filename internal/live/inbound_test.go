package live

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// respond has the buyer write a response to a document, and returns its bytes.
func (w *env) respond(inv store.Invoice, change func(*simulator.Push)) []byte {
	w.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	now := w.read(inv)
	push := simulator.Push{URL: server.URL, Issuer: issuerRNC, ENCF: now.ENCF, Issued: "14-11-2026", Total: now.DocumentTotal}
	if change != nil {
		change(&push)
	}
	pushed, err := w.sim.SendACECF(w.t.Context(), buyerRNC, push)
	w.must(err)
	return []byte(pushed.XML)
}

func (w *env) approve(xml []byte) error {
	w.t.Helper()
	r, err := reply.ReadResponse(xml, w.roots, w.now())
	w.must(err)
	return w.inbox.Commercial(w.t.Context(), r)
}

func rejected(reason string) func(*simulator.Push) {
	return func(p *simulator.Push) { p.Reject, p.Reason = true, reason }
}

// The buyer rejects what the authority has accepted: the status stays, the integrator
// gets one event, and the first response stands. A response that contradicts it is an
// event that says so.
func TestCommercialRejectionIsRecorded(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		before := w.read(inv)
		for range 2 { // the same again has no effect
			w.must(w.approve(w.respond(inv, rejected("no pedido"))))
		}
		for range 2 {
			w.must(w.approve(w.respond(inv, nil))) // the other way round
		}
		after := w.read(inv)
		if after.Status != fiscal.Delivered || after.Revision != before.Revision || !after.UpdatedAt.After(before.UpdatedAt) ||
			!slices.Equal(after.Messages, append(before.Messages, "Rechazo comercial: no pedido", "Aprobación comercial posterior que contradice el rechazo")) {
			t.Errorf("%+v", after)
		}
		events := slices.DeleteFunc(w.feed(), func(e emitted) bool { return e.Type != event.CommercialResponse })
		if len(events) != 2 {
			t.Fatalf("events %+v", events)
		}
		first, second := events[0].Data, events[1].Data
		if first.Result != "rejected" || first.Reason != "no pedido" || first.PreviousStatus != "" || first.Status != fiscal.Delivered ||
			first.Sequence != before.Revision || first.Signer != buyerSigner || first.Contradicts != "" {
			t.Errorf("the first is %+v", first)
		}
		if second.Result != "accepted" || second.Signer != buyerSigner || second.Contradicts != "rejected" {
			t.Errorf("the second is %+v", second)
		}
		known, err := ReadEvidence(t.Context(), w.store(), w.scope, inv.DocumentID)
		w.must(err)
		known = slices.DeleteFunc(known, func(e evidence.Item) bool { return e.Kind != evidence.Commercial })
		if len(known) != 2 || known[0].Verdict != fiscal.VerdictRejected || known[0].Signer != buyerSigner || !known[0].Confirmed {
			t.Errorf("kept %+v", known)
		}
		w.clean()
	})
}

// What does not belong to one of our documents has no effect.
func TestCommercialResponseMustMatchTheDocument(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		credit, consumer := w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 300_000)
		w.drive(time.Hour)
		submitted := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
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
			if err := w.approve(w.respond(c.inv, c.change)); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		for _, e := range w.feed() {
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
		w := newEnv(t, address, envOptions{receiver: true})
		w.rule(1, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "500"})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(30 * time.Second) // accepted, and the buyer does not answer
		xml := w.respond(inv, nil)
		var busy sync.WaitGroup
		for range 8 {
			busy.Go(func() {
				if err := w.approve(xml); err != nil {
					t.Error(err)
				}
			})
		}
		busy.Go(func() { w.drive(time.Hour) })
		busy.Wait()
		w.drive(time.Hour) // now the buyer has acknowledged it, so that the signer is known
		_, err := w.inbox.ApplyConfirmed(t.Context())
		w.must(err)
		if got := w.read(inv); got.Status != fiscal.Delivered || !slices.Equal(got.Messages, []string{"Aprobación comercial"}) {
			t.Errorf("%+v", got)
		}
		responses := slices.DeleteFunc(w.feed(), func(e emitted) bool { return e.Type != event.CommercialResponse })
		if len(responses) != 1 || responses[0].Data.Result != "accepted" {
			t.Errorf("events %+v", responses)
		}
		w.clean()
	})
}

// A relay passes on what buyers have signed: it has an effect once, and nothing
// that does not belong to the relay's taxpayer has any.
func TestReceiveInboundMessages(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		inv, other := w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.FiscalCredit, 2000)
		w.drive(time.Hour)
		inv, other = w.read(inv), w.read(other)
		source := store.Source{Scope: w.scope, ID: store.NewID(), Kinds: []string{event.InboundReceipt, event.InboundCommercial}, Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
		w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateSource(t.Context(), source) }))
		stranger := source
		stranger.TaxpayerID = store.NewID()

		buyer, err := w.sim.Identity(buyerSigner)
		w.must(err)
		receipt := func(a reply.Acknowledgement) []byte {
			a.IssuerRNC, a.BuyerRNC, a.At = issuerRNC, buyerRNC, w.now()
			if a.ENCF == "" {
				a.ENCF = inv.ENCF
			}
			xml, err := reply.Acknowledge(buyer, a)
			w.must(err)
			return xml
		}
		n := 0
		hear := func(change func(*inbox.Message)) (inbox.Received, error) {
			n++
			in := inbox.Message{Source: source, MessageID: fmt.Sprint("msg_", n), Kind: event.InboundReceipt, ENCF: inv.ENCF, XML: receipt(reply.Acknowledgement{Received: true})}
			change(&in)
			return w.inbox.Receive(t.Context(), in)
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
			{"another buyer", "data.xml_base64", func(in *inbox.Message) { in.XML = w.receiptOf(t, inv.ENCF, "131000001") }},
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
		w.want(inv, "queued submitted accepted")

		// A refusal emits an event and the status stays; a later receipt counts.
		if _, err := hear(func(in *inbox.Message) { in.XML = receipt(reply.Acknowledgement{Reason: reply.ReasonBuyer}) }); err != nil {
			t.Error(err)
		}
		w.want(inv, "queued submitted accepted")
		first, err := hear(func(in *inbox.Message) { in.MessageID = "same" })
		again, errAgain := hear(func(in *inbox.Message) { in.MessageID = "same" })
		if err != nil || errAgain != nil || first.Duplicate || !again.Duplicate || first.EventID != again.EventID {
			t.Errorf("%+v, %v and again %+v, %v", first, err, again, errAgain)
		}
		w.want(inv, "queued submitted accepted delivered")
		if _, err := hear(func(in *inbox.Message) { in.Kind, in.XML = event.InboundCommercial, w.respond(inv, nil) }); err != nil {
			t.Error(err)
		}
		want := "fiscal_document.submitted fiscal_document.accepted fiscal_document.artifacts_ready fiscal_document.delivery_failed fiscal_document.delivered fiscal_document.commercial_response_unconfirmed"
		if got := w.kinds(inv); got != want {
			t.Errorf("events %s", got)
		}
		w.want(other, "queued submitted accepted")
		w.drive(time.Hour)
		w.clean()
	})
}

// receiptOf is an acknowledgement of a buyer that is not the document's.
func (w *env) receiptOf(t *testing.T, encf, buyer string) []byte {
	t.Helper()
	id, err := w.sim.Identity(buyerSigner)
	w.must(err)
	xml, err := reply.Acknowledge(id, reply.Acknowledgement{IssuerRNC: issuerRNC, BuyerRNC: buyer, ENCF: encf, Received: true, At: w.now()})
	w.must(err)
	return xml
}

// A message that came before its document is judged by the moment when it came, even if
// the certificate of its signer has expired meanwhile.
func TestAParkedMessageOutlivesItsCertificate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	ranges, err := w.store().NumberRangesOf(t.Context(), w.scope, fiscal.FiscalCredit)
	w.must(err)
	encf, err := fiscal.NewENCF(fiscal.FiscalCredit, ranges[0].Next)
	w.must(err)
	source := store.Source{Scope: w.scope, ID: store.NewID(), Kinds: event.InboundKinds(), Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
	w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateSource(t.Context(), source) }))
	file, err := w.sim.IssueCertificate(simulator.CertificateRequest{Holder: buyerSigner, Days: 10})
	w.must(err)
	buyer, err := xmlsig.OpenP12(file.P12, file.Password)
	w.must(err)
	xml, err := reply.Acknowledge(buyer, reply.Acknowledgement{IssuerRNC: issuerRNC, BuyerRNC: buyerRNC, ENCF: encf.String(), Received: true, At: w.now()})
	w.must(err)
	in := inbox.Message{Source: source, MessageID: "m", Kind: event.InboundReceipt, ENCF: encf.String(), XML: xml}
	if _, err := w.inbox.Receive(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(20 * 24 * time.Hour)
	in.MessageID = "late"
	var invalid *inbox.InvalidMessageError
	if _, err := w.inbox.Receive(t.Context(), in); !errors.As(err, &invalid) {
		t.Errorf("a message of today: %v", err)
	}
	inv := w.create(fiscal.FiscalCredit, 1000)
	w.drive(time.Hour)
	w.must(w.inbox.ApplyParked(t.Context()))
	w.want(inv, "queued submitted accepted delivered")
}
