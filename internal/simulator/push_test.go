package simulator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestPeersPushDocuments(t *testing.T) {
	t.Parallel()
	// The receiver under test is a peer of another simulator.
	other := newEnv(t)
	e := newEnv(t)
	must(t, e.Reset(&simulator.Fixture{Trust: []string{string(other.RootsPEM())}, Taxpayers: []simulator.Taxpayer{
		{RNC: buyer, Name: "Comprador", Delegates: []simulator.Delegate{{ID: "22400022111"}}, Receiver: &simulator.Receiver{}}, simulator.Baseline(issuer, person, "2027-12-31"),
	}}))
	base := e.base + "/peer/" + buyer
	pushed, err := other.SendECF(t.Context(), issuer, simulator.Push{URL: base, Auth: base, Buyer: buyer})
	must(t, err)
	if got := e.arecf(response{body: pushed.Answer}); !strings.HasPrefix(got, "0 "+pushed.ENCF) || !strings.HasPrefix(pushed.XML, "<ECF>") {
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
		t.Error("SendECF accepted an unknown value of Hostile")
	}
	if _, err := other.SendECF(t.Context(), issuer, simulator.Push{URL: base, Type: "32"}); err == nil {
		t.Error("SendECF accepted type 32")
	}
	for _, reject := range []bool{false, true} {
		pushed, err := other.SendACECF(t.Context(), issuer, simulator.Push{URL: base, Issuer: buyer, ENCF: encf31(1), Issued: "01-06-2026", Total: "100", Reject: reject})
		if err != nil || pushed.Status != http.StatusOK || strings.Contains(pushed.XML, "<Estado>2<") != reject {
			t.Errorf("%+v %v", pushed, err)
		}
	}
	control(t, other, http.MethodPost, "/peers/"+issuer+"/send-ecf", `{"url":"`+base+`","buyer":"`+buyer+`","type":"34"}`)
	control(t, other, http.MethodPost, "/peers/"+issuer+"/send-acecf", `{"url":"`+base+`","issuer":"`+buyer+`","encf":"`+encf31(1)+`","issued":"01-06-2026","total":"1"}`)
	if list := control(t, e, http.MethodGet, "/peers/"+buyer+"/deliveries", ""); !strings.Contains(list, issuer) {
		t.Errorf("%s", list)
	}
}

func TestPushFailsWhenTheReceiverIsDown(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	if _, err := e.SendECF(t.Context(), issuer, simulator.Push{URL: dead.URL, Buyer: buyer}); err == nil {
		t.Error("no error although the server is closed")
	}
	if _, err := e.SendECF(t.Context(), issuer, simulator.Push{URL: e.base, Auth: dead.URL, Buyer: buyer}); err == nil {
		t.Error("no error although the server is closed")
	}
}
