package live

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
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
	var all []string
	for _, e := range w.feed() {
		if e.Data.InvoiceID == inv.ID && strings.Contains(e.Type, "commercial_response") {
			all = append(all, strings.TrimPrefix(e.Type, "fiscal_document.")+" "+e.Data.Result)
		}
	}
	return all
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
		w.must(w.approve(w.respondAs(stranger, inv, rejected("falso"))))
		w.must(w.approve(w.respond(inv, nil)))
		if got := w.responses(inv); !slices.Equal(got, []string{"commercial_response_unconfirmed rejected", "commercial_response accepted"}) {
			t.Errorf("events %q", got)
		}
		if got := w.read(inv).Messages; !slices.Equal(got, []string{"Aprobación comercial"}) {
			t.Errorf("messages %q", got)
		}
		w.clean()
	})
}

// Whoever floods a document with responses fills a bounded number of rows.
func TestAFloodOfResponsesIsBounded(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		w.must(w.approve(w.respond(inv, nil)))
		for i := range 20 {
			_ = w.approve(w.respond(inv, rejected(fmt.Sprint("motivo ", i))))
		}
		if known, err := ReadEvidence(t.Context(), w.store(), w.scope, inv.DocumentID); err != nil || len(known) > 8+4 {
			t.Errorf("%d items of evidence, %v", len(known), err)
		}
	})
}
