package receiver_test

import (
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// hostiles lists the ways in which the simulator damages a document.
var hostiles = []string{
	"unsigned", "altered", "two-signatures", "signature-first", "object", "sha1", "comment", "cdata", "doctype", "instruction", "wrapped",
}

// The peers of the simulator call with and without a token, with valid and with forged
// documents.
func TestSimulatedPeers(t *testing.T) {
	t.Parallel()
	clock := time.Now().Truncate(time.Second)
	s, err := simulator.New(simulator.Options{Now: func() time.Time { return clock }, Seed: 1, Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.AddTaxpayer(simulator.Taxpayer{RNC: buyer, Name: "Compradora", Delegates: []simulator.Delegate{{ID: "22400022111"}}}); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.CA())
	e := newEnv(t, func(o *receiver.Options) { o.Roots, o.Now = roots, func() time.Time { return clock } })

	for _, auth := range []string{"", e.url, e.url + "/ecf/"} {
		for _, reject := range []bool{false, true} {
			e.responses = nil
			p, err := s.SendACECF(t.Context(), buyer, simulator.Push{URL: e.url, Auth: auth, Issuer: ours, ENCF: encf, Issued: "01-06-2026", Total: "4425", Reject: reject})
			if err != nil {
				t.Fatal(err)
			}
			if p.Status != http.StatusOK || p.Answer != `{"estado":"OK"}` || len(e.responses) != 1 {
				t.Fatalf("%+v, %d stored", p, len(e.responses))
			}
			r := e.responses[0]
			if r.IssuerRNC != ours || r.BuyerRNC != buyer || r.ENCF != encf || r.Accepted == reject || (r.Reason != "") != reject ||
				r.Total.String() != "4425" || r.IssueDate.String() != "2026-06-01" || !r.At.Equal(clock) || r.Signer != "22400022111" {
				t.Errorf("%+v", r)
			}
		}
		p, err := s.SendECF(t.Context(), buyer, simulator.Push{URL: e.url + "/x", Auth: auth, Buyer: ours})
		if err != nil || p.Status != http.StatusOK || !strings.Contains(p.Answer, "<CodigoMotivoNoRecibido>1<") {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	e.responses = nil
	for _, hostile := range hostiles {
		p, err := s.SendACECF(t.Context(), buyer, simulator.Push{URL: e.url, Issuer: ours, ENCF: encf, Issued: "01-06-2026", Total: "4425", Hostile: hostile})
		if err != nil || p.Status != http.StatusBadRequest {
			t.Errorf("%s: %+v, %v", hostile, p, err)
		}
		p, err = s.SendECF(t.Context(), buyer, simulator.Push{URL: e.url, Buyer: ours, Hostile: hostile})
		if err != nil || p.Status != http.StatusBadRequest || strings.Contains(p.Answer, "ARECF") {
			t.Errorf("%s: %+v, %v", hostile, p, err)
		}
	}
	if len(e.responses) > 0 {
		t.Errorf("%d forged responses were stored", len(e.responses))
	}
}

// The client of package dgii delivers to the receiver and accepts its acknowledgement.
func TestOurClientDelivers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	hosts, err := dgii.SimulatorHosts(e.url, "certecf")
	if err != nil {
		t.Fatal(err)
	}
	c, err := dgii.New(dgii.Options{Hosts: hosts, Now: time.Now, Roots: own().CA.Pool(), AllowOrigin: e.url})
	if err != nil {
		t.Fatal(err)
	}
	to := fiscal.BuyerEndpoint{RNC: ours, Reception: e.url, Authentication: e.url}
	r, err := c.Deliver(t.Context(), peer().Identity, to, fiscal.Shipment{RNC: supplier, ENCF: encf, XML: []byte(sign(t, peer().Identity, invoiceXML))})
	if err != nil || r.Received || r.Reason != "1" || len(e.used) != 0 { // nothing demands a token
		t.Errorf("%+v, %v, %d seeds", r, err, len(e.used))
	}
}
