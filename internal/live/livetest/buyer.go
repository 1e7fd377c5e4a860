package livetest

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Respond has the buyer write a response to a document, and returns its bytes.
func (w *Env) Respond(inv store.Invoice, change func(*simulator.Push)) []byte {
	w.T.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	now := w.Read(inv)
	push := simulator.Push{URL: server.URL, Issuer: IssuerRNC, ENCF: now.ENCF, Issued: "14-11-2026", Total: now.DocumentTotal}
	if change != nil {
		change(&push)
	}
	pushed, err := w.Sim.SendACECF(w.T.Context(), BuyerRNC, push)
	w.Must(err)
	return []byte(pushed.XML)
}

// Approve takes a commercial response in, as the receiver does.
func (w *Env) Approve(xml []byte) error {
	w.T.Helper()
	r, err := reply.ReadResponse(xml, w.Roots, w.Now())
	w.Must(err)
	return w.Inbox.Commercial(w.T.Context(), r)
}

// Rejected makes a response a rejection.
func Rejected(reason string) func(*simulator.Push) {
	return func(p *simulator.Push) { p.Reject, p.Reason = true, reason }
}

// ReceiptOf is an acknowledgement of a buyer that is not the document's.
func (w *Env) ReceiptOf(t *testing.T, encf, buyer string) []byte {
	t.Helper()
	id, err := w.Sim.Identity(BuyerSigner)
	w.Must(err)
	xml, err := reply.Acknowledge(id, reply.Acknowledgement{IssuerRNC: IssuerRNC, BuyerRNC: buyer, ENCF: encf, Received: true, At: w.Now()})
	w.Must(err)
	return xml
}

// RespondAs returns a response of the buyer that is signed by another person with a
// trusted certificate.
func (w *Env) RespondAs(signer string, inv store.Invoice, change func(*simulator.Push)) []byte {
	w.T.Helper()
	id, err := w.Sim.Identity(signer)
	w.Must(err)
	plain := signatureElement.ReplaceAll(w.Respond(inv, change), nil)
	document, err := xmlsig.Parse(plain, xmlsig.SmallLimits())
	w.Must(err)
	signed, err := id.SignDocument(document)
	w.Must(err)
	return signed
}

// Stranger is a person who is not known to act for the buyer.
const Stranger = "40200000001"

var signatureElement = regexp.MustCompile(`(?s)<Signature .*</Signature>`)
