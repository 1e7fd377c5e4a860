package live

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var signatureElement = regexp.MustCompile(`(?s)<Signature .*</Signature>`)

// respondAs returns a response like that of the buyer, signed by another person with a
// trusted certificate.
func (w *env) respondAs(signer string, inv store.Invoice, change func(*simulator.Push)) []byte {
	w.t.Helper()
	id, err := w.sim.Identity(signer)
	w.must(err)
	plain := signatureElement.ReplaceAll(w.respond(inv, change), nil)
	document, err := xmlsig.Parse(plain, xmlsig.SmallLimits())
	w.must(err)
	signed, err := id.SignDocument(document)
	w.must(err)
	return signed
}

// responses returns the events about commercial responses: kind, result and signer of
// each.
func (w *env) responses(inv store.Invoice) []string {
	w.t.Helper()
	all := []string{}
	for _, e := range w.feed() {
		if e.Data.InvoiceID == inv.ID && strings.Contains(e.Type, "commercial_response") {
			all = append(all, strings.TrimPrefix(e.Type, "fiscal_document.commercial_")+" "+e.Data.Result+" "+e.Data.Signer)
		}
	}
	return all
}

func (w *env) wantResponses(inv store.Invoice, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.responses(inv)); diff != "" {
		w.t.Errorf("events about responses (-want +got):\n%s", diff)
	}
}

// confirm lets an operator confirm a signer.
func (w *env) confirm(signer string) {
	w.t.Helper()
	w.must(w.store().Update(w.t.Context(), func(tx *store.Tx) error {
		return tx.ConfirmBuyerSigner(w.t.Context(), store.BuyerSigner{Scope: w.scope, BuyerRNC: buyerRNC, Signer: signer, CreatedAt: w.now()})
	}))
	_, err := w.inbox.ApplyConfirmed(w.t.Context())
	w.must(err)
}

const stranger = "40200000001"

// A stranger with a trusted certificate rejects a document in the name of the buyer,
// before the buyer approves it. The buyer's approval stands.
func TestAStrangersResponseIsNotTheBuyers(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		for range 2 {
			w.must(w.approve(w.respondAs(stranger, inv, rejected("falso"))))
		}
		w.must(w.approve(w.respond(inv, nil)))
		w.wantResponses(inv, "response_unconfirmed rejected "+stranger, "response accepted "+buyerSigner)
		if got := w.read(inv).Messages; !slices.Equal(got, []string{"Aprobación comercial"}) {
			t.Errorf("messages %q", got)
		}
		w.clean()
	})
}

// A signer is known by the certificate, by an acknowledgement from the buyer's address, or
// because an operator has confirmed it. A document that was not delivered has no
// acknowledgement; one that a source passes on did not come from the buyer's address.
func TestSignersWhoAreKnownToActForTheBuyer(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		named, relayed, confirmed := w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.FiscalCredit, 2000), w.create(fiscal.FiscalCredit, 3000)
		w.drive(time.Hour)

		w.must(w.approve(w.respondAs(buyerRNC, named, nil)))
		w.wantResponses(named, "response accepted "+buyerRNC)

		source := store.Source{Scope: w.scope, ID: store.NewID(), Kinds: []string{event.InboundReceipt}}
		_, err := w.inbox.Receive(t.Context(), inbox.Message{
			Source: source, MessageID: "m1", Kind: event.InboundReceipt, ENCF: w.read(relayed).ENCF, XML: w.receiptOf(t, w.read(relayed).ENCF, buyerRNC),
		})
		w.must(err)
		w.must(w.approve(w.respond(relayed, nil)))
		w.wantResponses(relayed, "response_unconfirmed accepted "+buyerSigner)

		w.must(w.approve(w.respondAs(stranger, confirmed, rejected("falso"))))
		w.must(w.approve(w.respond(confirmed, nil)))
		w.confirm(buyerSigner)
		w.must(w.approve(w.respond(confirmed, nil))) // a repetition
		w.wantResponses(relayed, "response_unconfirmed accepted "+buyerSigner, "response accepted "+buyerSigner)
		w.wantResponses(confirmed, "response_unconfirmed rejected "+stranger, "response_unconfirmed accepted "+buyerSigner, "response accepted "+buyerSigner)
		if got := w.read(confirmed).Messages; !slices.Equal(got, []string{"Aprobación comercial"}) {
			t.Errorf("messages %q", got)
		}
		left, err := w.store().UnconfirmedResponses(t.Context(), w.scope, confirmed.DocumentID)
		if err != nil || len(left) != 1 || left[0].Signer != stranger {
			t.Errorf("kept apart: %+v, %v", left, err)
		}
	})
}

// A response that a program of an earlier version stored without asking who signed it
// does not stand in the way of the buyer.
func TestAStoredResponseOfAStrangerDoesNotStand(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		old := pipeline.Finding{Item: evidence.Item{Kind: evidence.Commercial, Verdict: fiscal.VerdictRejected, Signer: stranger, At: w.now()}}
		row, err := old.Row(w.scope, inv.DocumentID)
		w.must(err)
		w.must(w.store().Commit(t.Context(), new(store.Batch).AddEvidence(row)))
		w.must(w.approve(w.respond(inv, nil)))
		w.wantResponses(inv, "response accepted "+buyerSigner)
	})
}

// A flood of responses to one document fills a bounded number of rows, and strangers
// never close the document for the buyer.
func TestAFloodOfResponsesIsBounded(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		var log bytes.Buffer
		w.options.Log = slog.New(slog.NewTextHandler(&log, nil))
		w.startEngine()
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		before, err := ReadEvidence(t.Context(), w.store(), w.scope, inv.DocumentID)
		w.must(err)
		var refused int
		for i := range 8 {
			err := w.approve(w.respondAs(fmt.Sprintf("4020000%04d", i), inv, rejected(fmt.Sprint("falso ", i))))
			if errors.Is(err, reply.ErrTooMany) {
				refused++
				continue
			}
			w.must(err)
		}
		for i := range 20 {
			w.must(w.approve(w.respond(inv, rejected(fmt.Sprint("motivo ", i)))))
		}
		kept, err := w.store().UnconfirmedResponses(t.Context(), w.scope, inv.DocumentID)
		w.must(err)
		known, err := ReadEvidence(t.Context(), w.store(), w.scope, inv.DocumentID)
		w.must(err)
		if len(kept) != store.MaxUnconfirmedResponses || refused != 4 || len(known) != len(before)+1 {
			t.Errorf("%d unconfirmed responses, %d refused, %d items of evidence", len(kept), refused, len(known)-len(before))
		}
		if got := w.responses(inv); len(got) != 5 || got[4] != "response rejected "+buyerSigner {
			t.Errorf("events %q", got)
		}
		if n := strings.Count(log.String(), "are refused"); n != 1 {
			t.Errorf("the limit is logged %d times:\n%s", n, &log)
		}
	})
}
