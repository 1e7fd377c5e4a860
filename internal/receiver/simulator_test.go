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

// hostiles are how the simulator's peers spoil a document, and whether its
// signature is then what is wrong with it.
var hostiles = map[string]bool{
	"unsigned": true, "altered": true, "two-signatures": true, "signature-first": true, "object": true, "sha1": true,
	"comment": false, "cdata": false, "doctype": false, "instruction": false, "wrapped": false,
}

// A peer that is not of our making calls us: by a token and without, with
// genuine documents and with forged ones.
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
	w := newWorld(t, func(o *receiver.Options) { o.Roots, o.Now = roots, func() time.Time { return clock } })

	for _, auth := range []string{"", w.url, w.url + "/ecf/"} {
		for _, reject := range []bool{false, true} {
			w.responses = nil
			p, err := s.SendACECF(t.Context(), buyer, simulator.Push{URL: w.url, Auth: auth, Issuer: ours, ENCF: encf, Issued: "01-06-2026", Total: "4425", Reject: reject})
			if err != nil {
				t.Fatal(err)
			}
			if p.Status != http.StatusOK || p.Answer != `{"estado":"OK"}` || len(w.responses) != 1 {
				t.Fatalf("%+v, %d kept", p, len(w.responses))
			}
			r := w.responses[0]
			if r.IssuerRNC != ours || r.BuyerRNC != buyer || r.ENCF != encf || r.Accepted == reject || (r.Reason != "") != reject ||
				r.Total.String() != "4425" || r.IssueDate.String() != "2026-06-01" || !r.At.Equal(clock) || r.Signer != "22400022111" {
				t.Errorf("%+v", r)
			}
		}
		p, err := s.SendECF(t.Context(), buyer, simulator.Push{URL: w.url + "/x", Auth: auth, Buyer: ours})
		if err != nil || p.Status != http.StatusOK || !strings.Contains(p.Answer, "<CodigoMotivoNoRecibido>1<") {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	w.responses = nil
	for hostile, signature := range hostiles {
		p, err := s.SendACECF(t.Context(), buyer, simulator.Push{URL: w.url, Issuer: ours, ENCF: encf, Issued: "01-06-2026", Total: "4425", Hostile: hostile})
		if err != nil || p.Status != http.StatusBadRequest {
			t.Errorf("%s: %+v, %v", hostile, p, err)
		}
		p, err = s.SendECF(t.Context(), buyer, simulator.Push{URL: w.url, Buyer: ours, Hostile: hostile})
		if err != nil {
			t.Fatal(err)
		}
		if !signature && p.Status != http.StatusBadRequest {
			t.Errorf("%s: %+v", hostile, p)
		}
		if signature && (p.Status != http.StatusOK || !strings.Contains(p.Answer, "<CodigoMotivoNoRecibido>2<")) {
			t.Errorf("%s: %+v", hostile, p)
		}
	}
	if len(w.responses) > 0 {
		t.Errorf("%d forged responses were kept", len(w.responses))
	}
}

// Our own client, as that of another issuer, gets a token and an acknowledgement
// that it believes.
func TestOwnClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hosts, err := dgii.SimulatorHosts(w.url, "certecf")
	if err != nil {
		t.Fatal(err)
	}
	c, err := dgii.New(dgii.Options{Hosts: hosts, Now: time.Now, Roots: own().CA.Pool(), AllowOrigin: w.url})
	if err != nil {
		t.Fatal(err)
	}
	to := fiscal.Receiver{RNC: ours, Reception: w.url, Authentication: w.url}
	r, err := c.Deliver(t.Context(), peer().Identity, to, fiscal.Shipment{RNC: supplier, ENCF: encf, XML: []byte(sign(t, peer().Identity, invoiceXML))})
	if err != nil || r.Received || r.Reason != "1" || len(w.used) != 1 {
		t.Errorf("%+v, %v, %d seeds", r, err, len(w.used))
	}
}
