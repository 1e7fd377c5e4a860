package simulator_test

import (
	"net/http"
	"net/http/httptest"
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

// arecf verifies an acknowledgement, and returns its state and reason.
func (r *rig) arecf(a reading) string {
	r.t.Helper()
	v, err := xmlsig.Verify([]byte(a.body), xmlsig.SmallLimits())
	if err != nil {
		return err.Error()
	}
	must(r.t, v.Trusted(pool(r), r.Now()))
	d := v.Root().Child(acknowledge)
	return strings.TrimSpace(d.Child("Estado").Text()+" "+d.Child("CodigoMotivoNoRecibido").Text()) + " " + d.Child("eNCF").Text() + " by " + xmlsig.Person(v.Certificate)
}

func TestPeerAcknowledges(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	raw := r.sign(invoice, encf31(1))
	r.verdict(r.send(encf31(1), raw))
	r.token = ""
	for range 2 { // the same bytes again are received again
		if got := r.arecf(r.upload(peerPath, issuer+encf31(1)+".xml", raw)); got != "0 "+encf31(1)+" by 22400022111" {
			t.Errorf("%s", got)
		}
	}
	if got := r.Deliveries(buyer); len(got) != 1 || got[0].Key != issuer+encf31(1) {
		t.Errorf("deliveries %+v", got)
	}
	r.noViolations()
	for reason, raw := range map[string][]byte{
		"1 3": r.sign(invoice, encf31(1), "Taladro", "Martillo"),
		"1 2": []byte(strings.Replace(string(raw), "Taladro", "Sierra", 1)),
		"1 1": r.sign(invoice, encf31(1), "<TipoPago>1", "<TipoPago>9"),
		"1 4": r.sign(invoice, encf31(1), buyer, "101023122"),
	} {
		if got := r.arecf(r.upload(peerPath, issuer+encf31(1)+".xml", raw)); !strings.HasPrefix(got, reason) {
			t.Errorf("%s, want %s", got, reason)
		}
	}
	if a := r.upload("/peer/101023122/fe/recepcion/api/ecf", "x.xml", raw); a.status != http.StatusNotFound {
		t.Errorf("nobody's receiver: %d", a.status)
	}
}

func TestPeerAuthentication(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	must(t, r.UpdateTaxpayer(buyer, func(t *simulator.Taxpayer) error { t.Receiver.RequireToken = true; return nil }))
	raw := r.sign(invoice, encf31(1))
	if a := r.upload(peerPath, issuer+encf31(1)+".xml", raw); a.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", a.status)
	}
	a := r.authenticate(peerSeed, peerToken, r.id)
	r.token, _ = a.json(t)["token"].(string)
	if got := r.arecf(r.upload(peerPath, issuer+encf31(1)+".xml", raw)); !strings.HasPrefix(got, "0") {
		t.Errorf("%s", got)
	}
	if a := r.get(result, "trackid", "x"); a.status != http.StatusUnauthorized {
		t.Errorf("a peer's token at the authority: %d", a.status)
	}
}

func TestPeerFaults(t *testing.T) {
	t.Parallel()
	for variant, want := range map[string]string{
		"arecf-1": "1 1 " + encf31(1) + " by 22400022111", "arecf-2": "1 2 ", "arecf-3": "1 3 ", "arecf-4": "1 4 ", "unsigned": "xmlsig: the document has no signature",
		"other-encf": "0 E319999999999", "other-signer": "0 " + encf31(1) + " by 40200000001", "500": "status Internal Server Error", "html": "xmlsig: the document is not XML", "indented": "0 " + encf31(1),
		"requires-token": "status Unauthorized", "timeout-after-store": "no answer",
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.fault(simulator.Rule{Match: simulator.Match{Peer: buyer}, Action: simulator.Action{Fault: "peer", Variant: variant}, Count: 1})
			ctx := t.Context()
			if variant == "timeout-after-store" {
				ctx = r.until(func() bool { return len(r.Deliveries(buyer)) == 1 })
			}
			raw := r.sign(invoice, encf31(1))
			a := r.uploadContext(ctx, peerPath, issuer+encf31(1)+".xml", raw)
			var got string
			switch {
			case a.err != nil:
				got = "no answer"
			case a.status != http.StatusOK:
				got = "status " + http.StatusText(a.status)
			default:
				got = r.arecf(a)
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			if stored := len(r.Deliveries(buyer)) == 1; variant == "timeout-after-store" && !stored {
				t.Error("it was not stored")
			}
		})
	}
}

func TestPush(t *testing.T) {
	t.Parallel()
	// The receiver under test is another simulator's peer.
	other := newRig(t)
	r := newRig(t)
	must(t, r.Reset(&simulator.Fixture{Trust: []string{string(other.RootsPEM())}, Taxpayers: []simulator.Taxpayer{
		{RNC: buyer, Name: "Comprador", Delegates: []simulator.Delegate{{ID: "22400022111"}}, Receiver: &simulator.Receiver{}}, simulator.Baseline(issuer, person, "2027-12-31"),
	}}))
	base := r.base + "/peer/" + buyer
	pushed, err := other.SendECF(t.Context(), issuer, simulator.Push{URL: base, Auth: base, Buyer: buyer})
	must(t, err)
	if got := r.arecf(reading{body: pushed.Answer}); !strings.HasPrefix(got, "0 "+pushed.ENCF) || !strings.HasPrefix(pushed.XML, "<ECF>") {
		t.Errorf("%s\n%s", got, pushed.Answer)
	}
	for _, hostile := range []string{"unsigned", "altered", "comment", "cdata", "doctype", "instruction", "two-signatures", "signature-first", "wrapped", "object", "sha1"} {
		pushed, err := other.SendECF(t.Context(), issuer, simulator.Push{URL: base, Buyer: buyer, Hostile: hostile})
		must(t, err)
		if pushed.Status == http.StatusOK && !strings.Contains(pushed.Answer, "<CodigoMotivoNoRecibido>") {
			t.Errorf("%s was received: %s", hostile, pushed.Answer)
		}
	}
	if _, err := other.SendECF(t.Context(), issuer, simulator.Push{URL: base, Hostile: "x"}); err == nil {
		t.Error("there is no such spoiling")
	}
	if _, err := other.SendECF(t.Context(), issuer, simulator.Push{URL: base, Type: "32"}); err == nil {
		t.Error("32 does not travel")
	}
	for _, reject := range []bool{false, true} {
		pushed, err := other.SendACECF(t.Context(), issuer, simulator.Push{URL: base, Issuer: buyer, ENCF: encf31(1), Issued: "01-06-2026", Total: "100", Reject: reject})
		if err != nil || pushed.Status != http.StatusOK || strings.Contains(pushed.XML, "<Estado>2<") != reject {
			t.Errorf("%+v %v", pushed, err)
		}
	}
	control(t, other, http.MethodPost, "/peers/"+issuer+"/send-ecf", `{"url":"`+base+`","buyer":"`+buyer+`","type":"34"}`)
	control(t, other, http.MethodPost, "/peers/"+issuer+"/send-acecf", `{"url":"`+base+`","issuer":"`+buyer+`","encf":"`+encf31(1)+`","issued":"01-06-2026","total":"1"}`)
	if list := control(t, r, http.MethodGet, "/peers/"+buyer+"/deliveries", ""); !strings.Contains(list, issuer) {
		t.Errorf("%s", list)
	}
}

func TestEmulator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const emulator = "/ecf-host/testecf/EmisorReceptor"
	const api = "/api/Emision/" //nolint:misspell // DGII's word
	base := r.base + "/peer/" + buyer
	post := func(path, body string) reading {
		return r.do(r.request(t.Context(), http.MethodPost, emulator+path, "", strings.NewReader(body)))
	}
	a := post(api+"EmisionComprobantes", `{"rnc":"`+buyer+`","tipoEncf":"31","urlRecepcion":"`+base+`","urlAutenticacion":""}`)
	if a.status != http.StatusOK || !strings.HasPrefix(a.body, "<ECF>") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	encf := strings.TrimSuffix(strings.TrimPrefix(nameOf(a.body), "131880681"), ".xml")
	if v := r.get(emulator+api+"consultaacuserecibo", "Rnc", buyer, "Encf", encf).json(t); v["estado"] != "Recibido" {
		t.Errorf("%v", v)
	}
	if v := r.get(emulator+api+"consultaacuserecibo", "Rnc", buyer, "Encf", "x").json(t); v["estado"] != "No encontrado" {
		t.Errorf("%v", v)
	}
	a = post(api+"envioaprobacioncomercial", `{"urlAprobacionComercial":"`+base+`","rnc":"`+issuer+`","encf":"`+encf31(1)+`","estadoAprobacion":"1"}`)
	if a.status != http.StatusOK || !strings.HasPrefix(a.body, "<ACECF") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, path := range []string{api + "emisioncomprobantes", api + "envioaprobacioncomercial"} {
		if a := post(path, "{"); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	// The emulator receives as any peer does.
	raw := r.sign(invoice, encf31(1), buyer, "131880681")
	if got := r.arecf(r.upload(emulator+"/fe/recepci%C3%B3n/api/ecf", issuer+encf31(1)+".xml", raw)); !strings.HasPrefix(got, "0") {
		t.Errorf("%s", got)
	}
}

func TestPushToNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	if _, err := r.SendECF(t.Context(), issuer, simulator.Push{URL: dead.URL, Buyer: buyer}); err == nil {
		t.Error("nobody listens")
	}
	if _, err := r.SendECF(t.Context(), issuer, simulator.Push{URL: r.base, Auth: dead.URL, Buyer: buyer}); err == nil {
		t.Error("nobody listens")
	}
}
