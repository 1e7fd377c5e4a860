package systemtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

const (
	buyerRNC  = "199000021"
	issuerRNC = "199000013"
	response  = "fiscal_document.commercial_response"
	// buyerSigner signs for the buyer.
	buyerSigner = "00199000019"
)

// A buyerEnv is an env with a running service, which has issued two documents to a
// buyer that sends commercial responses.
type buyerEnv struct {
	*env
	*hookListener
	server *harness.Server
}

func newBuyerEnv(t *testing.T, address string) *buyerEnv {
	t.Helper()
	w := newEnv(t, address, "happy")
	if err := w.sim.AddTaxpayer(simulator.Baseline(buyerRNC, buyerSigner, "2027-12-31")); err != nil {
		t.Fatal(err)
	}
	m := &buyerEnv{env: w, hookListener: w.listen(t), server: w.serve(t)}
	for _, n := range []int{0, 2} { // even numbers are sales to the buyer
		w.createInvoice(t, n)
	}
	w.settle(t)
	return m
}

// respond sends the buyer's response to a document, and checks the status of the
// answer.
func (m *buyerEnv) respond(t *testing.T, p simulator.Push, status int) *simulator.Pushed {
	t.Helper()
	p.Issuer = issuerRNC
	done, err := m.sim.SendACECF(t.Context(), buyerRNC, p)
	if err != nil {
		t.Fatal(err)
	}
	if done.Status != status {
		t.Errorf("%+v: %d %s, want %d", p, done.Status, done.Answer, status)
	}
	return done
}

// awaitResponse waits until webhooks have brought so many commercial responses, and
// returns the last.
func (m *buyerEnv) awaitResponse(t *testing.T, count int) arrival {
	t.Helper()
	harness.Eventually(t, 30*time.Second, "the webhook with the response arrives", func() bool { return len(m.arrivals(response)) >= count })
	return m.arrivals(response)[count-1]
}

func (m *buyerEnv) checkStatus(t *testing.T, url string, want int) {
	t.Helper()
	if got, err := harness.Status(t.Context(), url); err != nil || got != want {
		t.Errorf("%s: %d, %v, want %d", url, got, err, want)
	}
}

// A buyer sends a commercial response: a webhook must bring it with its reason, after an
// operator has confirmed the signer. A forged response must have no effect. The receiver
// listens with the API first, and then on a listener of its own.
func TestCommercialResponseReachesTheIntegrator(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		m := newBuyerEnv(t, address)
		base := m.server.Base
		m.checkStatus(t, base+"/FE/Autenticacion/API/Semilla", http.StatusOK)
		m.checkRefusedToken(t, base)
		for _, hostile := range []string{"altered", "unsigned"} {
			m.respond(t, simulator.Push{URL: base, ENCF: "E310000000001", Hostile: hostile}, http.StatusBadRequest)
		}
		rejection := m.respond(t, simulator.Push{URL: base, Auth: base, ENCF: "E310000000001", Reject: true, Reason: "Precio distinto"}, http.StatusOK)
		m.confirmSigner(t)
		received := m.awaitResponse(t, 1)
		if d := received.Data; d.ENCF != "E310000000001" || d.Status != fiscal.Accepted || d.PreviousStatus != "" || d.Result != "rejected" || d.Reason != "Precio distinto" {
			t.Errorf("%s", received.body)
		}
		if got := m.client.Read(t, received.Data.Links.Self); !strings.Contains(got, "Rechazo comercial: Precio distinto") {
			t.Errorf("%s", got)
		}
		if got := m.client.Read(t, base+"/v1/taxpayers/"+m.client.Taxpayer+"/events"); !strings.Contains(got, string(received.body)) {
			t.Errorf("the feed does not have the event of the webhook: %s", got)
		}
		for _, command := range [][]string{
			{"work", "show", received.Data.ID},
			{"history", "--document", received.Data.ID, "--taxpayer", m.client.Taxpayer, "--environment", "certification"},
		} {
			if got := fmt.Sprint(m.operate(t, command...)); !strings.Contains(got, buyerSigner) || !strings.Contains(got, "confirmed") {
				t.Errorf("%s does not name the signer: %s", command[0], got)
			}
		}
		// A source sends the same response: the service counts it once.
		source := m.operate(t, "source", "create", "--taxpayer", m.client.Taxpayer, "--environment", "certification", "--base-url", base)
		for _, duplicate := range []string{"false", "true"} {
			got := postSigned(t, fmt.Sprint(source["url"]), fmt.Sprint(source["secret"]), "msg_1", commercialResponse(rejection.ENCF, rejection.XML))
			if got.Status != http.StatusAccepted || !strings.Contains(got.Body, `"duplicate":`+duplicate) {
				t.Errorf("%d %s, want duplicate %s", got.Status, got.Body, duplicate)
			}
		}
		// An unsigned document gets no signature of the taxpayer that it names.
		sent, err := m.sim.SendECF(t.Context(), buyerRNC, simulator.Push{URL: base, Buyer: issuerRNC, Hostile: "unsigned"})
		if err != nil || sent.Status != http.StatusBadRequest || strings.Contains(sent.Answer, "<Signature") {
			t.Errorf("%+v, %v", sent, err)
		}
		// A supplier receives the signed answer of the taxpayer that it names.
		sent, err = m.sim.SendECF(t.Context(), buyerRNC, simulator.Push{URL: base, Buyer: issuerRNC})
		if err != nil || sent.Status != http.StatusOK || !strings.Contains(sent.Answer, "<CodigoMotivoNoRecibido>1<") || !strings.Contains(sent.Answer, "<Signature") {
			t.Errorf("%+v, %v", sent, err)
		}
		// The operator replays the event: it keeps its id.
		if got := m.operate(t, "webhook", "replay", m.endpoint, "--event", received.ID); got["events"] != 1.0 {
			t.Errorf("replayed %v", got)
		}
		if again := m.awaitResponse(t, 2); again.ID != received.ID {
			t.Errorf("replayed as %s, was %s", again.ID, received.ID)
		}
		if got := m.operate(t, "webhook", "test", m.endpoint, "--webhook-allow-private"); got["delivered"] != true || got["http_status"] != 204.0 {
			t.Errorf("test %v", got)
		}

		m.checkOwnListener(t)
		feed, err := storetest.Open(t, address, time.Now).Feed(t.Context(), store.Scope{Environment: fiscal.Certification, TaxpayerID: m.client.Taxpayer}, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		feed = slices.DeleteFunc(feed, func(n store.Event) bool { return n.Kind != response })
		if len(feed) != 2 {
			t.Errorf("the feed has %d responses, want 2", len(feed))
		}
	})
}

// checkRefusedToken sends a wrong token, which must be counted.
func (m *buyerEnv) checkRefusedToken(t *testing.T, base string) {
	t.Helper()
	res, err := (&harness.Client{Key: "x", HTTP: harness.HTTP}).Send(t.Context(), http.MethodPost, base+"/fe/recepcion/api/ecf", "")
	if err != nil {
		t.Fatal(err)
	}
	const want = `fiscalhub_authentication_failures_total{reason="wrong_token"} 1`
	if got := harness.Fetch(t, base+"/metrics"); res.Status != http.StatusBadRequest || !strings.Contains(string(got), want) {
		t.Errorf("%d, and the metrics lack %s", res.Status, want)
	}
}

// confirmSigner waits for a response whose signer is not known to act for the buyer, and
// lets an operator confirm the signer.
func (m *buyerEnv) confirmSigner(t *testing.T) {
	t.Helper()
	const kind = response + "_unconfirmed"
	harness.Eventually(t, 30*time.Second, "the webhook with the unconfirmed response arrives", func() bool { return len(m.arrivals(kind)) == 1 })
	if d := m.arrivals(kind)[0].Data; d.Result != "rejected" || d.Signer != buyerSigner {
		t.Errorf("%+v", d)
	}
	if got := m.client.Read(t, m.arrivals(kind)[0].Data.Links.Self); strings.Contains(got, "Rechazo comercial") {
		t.Errorf("the document shows a response that is not confirmed: %s", got)
	}
	got := m.operate(t, "buyer", "confirm", "--taxpayer", m.client.Taxpayer, "--environment", "certification", "--rnc", buyerRNC, "--signer", buyerSigner)
	if got["responses"] != 1.0 {
		t.Errorf("confirmed %v", got)
	}
}

// checkOwnListener starts the service with --receiver-listen, and checks that each
// listener serves only its own paths.
func (m *buyerEnv) checkOwnListener(t *testing.T) {
	t.Helper()
	m.server.Stop(t)
	m.server = harness.Serve(t, append(m.args, "--receiver-listen", "127.0.0.1:0")...)
	own := harness.Submatch(m.server.Greeting, `Receiver (\S+)/fe`)
	m.checkStatus(t, own+"/fe/Autenticacion/api/Semilla", http.StatusOK)
	for _, absent := range []string{m.server.Base + "/fe/autenticacion/api/semilla", own + "/livez", own + "/v1/openapi.json"} {
		m.checkStatus(t, absent, http.StatusNotFound)
	}
	m.respond(t, simulator.Push{URL: own, Auth: own, ENCF: "E310000000002"}, http.StatusOK)
	if d := m.awaitResponse(t, 3).Data; d.ENCF != "E310000000002" || d.Result != "accepted" || d.Reason != "" {
		t.Errorf("%+v", d)
	}
}
