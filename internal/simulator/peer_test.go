package simulator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	peerPath    = "/peer/" + buyer + "/fe/recepcion/api/ecf"
	peerSeed    = "/peer/" + buyer + "/fe/autenticacion/api/semilla"
	peerToken   = "/peer/" + buyer + "/fe/autenticacion/api/ValidacionCertificado"
	acknowledge = "DetalleAcusedeRecibo"
)

// arecf verifies an acknowledgement and returns its state, reason, number and signer.
func (e *env) arecf(a response) string {
	e.t.Helper()
	v, err := xmlsig.Verify([]byte(a.body), xmlsig.SmallLimits())
	if err != nil {
		return err.Error()
	}
	must(e.t, v.Trusted(rootPool(e), e.Now()))
	d := v.Root().Child(acknowledge)
	return strings.TrimSpace(d.Child("Estado").Text()+" "+d.Child("CodigoMotivoNoRecibido").Text()) + " " + d.Child("eNCF").Text() + " by " + xmlsig.Person(v.Certificate)
}

func TestPeerAcknowledgesDeliveries(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	raw := e.sign(invoice, encf31(1))
	e.verdict(e.send(encf31(1), raw))
	e.token = ""
	for range 2 { // the same bytes get the same acknowledgement
		if got := e.arecf(e.upload(peerPath, issuer+encf31(1)+".xml", raw)); got != "0 "+encf31(1)+" by 22400022111" {
			t.Errorf("%s", got)
		}
	}
	if got := e.Deliveries(buyer); len(got) != 1 || got[0].Key != issuer+encf31(1) {
		t.Errorf("deliveries %+v", got)
	}
	e.noViolations()
	for reason, raw := range map[string][]byte{
		"1 3": e.sign(invoice, encf31(1), "Taladro", "Martillo"),
		"1 2": []byte(strings.Replace(string(raw), "Taladro", "Sierra", 1)),
		"1 1": e.sign(invoice, encf31(1), "<TipoPago>1", "<TipoPago>9"),
		"1 4": e.sign(invoice, encf31(1), buyer, "101023122"),
	} {
		if got := e.arecf(e.upload(peerPath, issuer+encf31(1)+".xml", raw)); !strings.HasPrefix(got, reason) {
			t.Errorf("%s, want %s", got, reason)
		}
	}
	if a := e.upload("/peer/101023122/fe/recepcion/api/ecf", "x.xml", raw); a.status != http.StatusNotFound {
		t.Errorf("a taxpayer without a receiver: %d", a.status)
	}
}

func TestPeerRequiresItsOwnTokens(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	must(t, e.UpdateTaxpayer(buyer, func(t *simulator.Taxpayer) error { t.Receiver.RequireToken = true; return nil }))
	raw := e.sign(invoice, encf31(1))
	if a := e.upload(peerPath, issuer+encf31(1)+".xml", raw); a.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", a.status)
	}
	a := e.authenticate(peerSeed, peerToken, e.id)
	e.token, _ = a.json(t)["token"].(string)
	if got := e.arecf(e.upload(peerPath, issuer+encf31(1)+".xml", raw)); !strings.HasPrefix(got, "0") {
		t.Errorf("%s", got)
	}
	if a := e.get(result, "trackid", "x"); a.status != http.StatusUnauthorized {
		t.Errorf("a peer's token at the authority: %d", a.status)
	}
}

func TestFaultsOfPeers(t *testing.T) {
	t.Parallel()
	for variant, want := range map[string]string{
		"arecf-1": "1 1 " + encf31(1) + " by 22400022111", "arecf-2": "1 2 ", "arecf-3": "1 3 ", "arecf-4": "1 4 ", "unsigned": "xmlsig: the document has no signature",
		"other-encf": "0 E319999999999", "other-signer": "0 " + encf31(1) + " by 40200000001", "500": "status Internal Server Error", "html": "xmlsig: the document is not XML", "indented": "0 " + encf31(1),
		"requires-token": "status Unauthorized", "timeout-after-store": "no answer",
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.addRule(simulator.Rule{Match: simulator.Match{Peer: buyer}, Action: simulator.Action{Fault: "peer", Variant: variant}, Count: 1})
			ctx := t.Context()
			if variant == "timeout-after-store" {
				ctx = e.cancelWhen(func() bool { return len(e.Deliveries(buyer)) == 1 })
			}
			raw := e.sign(invoice, encf31(1))
			a := e.uploadContext(ctx, peerPath, issuer+encf31(1)+".xml", raw)
			var got string
			switch {
			case a.err != nil:
				got = "no answer"
			case a.status != http.StatusOK:
				got = "status " + http.StatusText(a.status)
			default:
				got = e.arecf(a)
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			if stored := len(e.Deliveries(buyer)) == 1; variant == "timeout-after-store" && !stored {
				t.Error("the delivery was not stored")
			}
		})
	}
}
