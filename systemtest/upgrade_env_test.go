package systemtest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// The taxpayers of the fixture, and the person who signs for both issuers.
const (
	upgradeIssuer   = "199000013" // has documents in every state
	upgradeFenced   = "199000048" // has a fenced range
	upgradeReceiver = "199000021" // a buyer that receives documents
	upgradeDeaf     = "199000064" // a buyer that fails while the fixture is made
	upgradeBuyer    = "199000056" // a buyer that receives nothing
	upgradeSigner   = "00112345678"
)

// upgradeAuthority returns the fixture of the simulator: both issuers with their
// ranges, the buyers, and the root of the signer's certificate.
func upgradeAuthority(roots []byte) any {
	issuer := func(rnc string) map[string]any {
		return map[string]any{
			"rnc": rnc, "name": "Contribuyente " + rnc, "delegates": []any{map[string]any{"id": upgradeSigner}},
			"ranges": []any{
				map[string]any{"type": "31", "from": 1, "to": 100000, "expires": upgradeExpires},
				map[string]any{"type": "32", "from": 1, "to": 100000},
			},
		}
	}
	buyer := func(rnc, delegate string) map[string]any {
		return map[string]any{
			"rnc": rnc, "name": "Comprador " + rnc, "delegates": []any{map[string]any{"id": delegate}}, "receiver": map[string]any{},
		}
	}
	return map[string]any{
		"trust":     []string{string(roots)},
		"taxpayers": []any{issuer(upgradeIssuer), issuer(upgradeFenced), buyer(upgradeReceiver, "00199000019"), buyer(upgradeDeaf, "00199000027")},
	}
}

// upgradeExpires is the last day of the ranges and of the certificate. It is far
// away, because the tests must pass for years after the fixture was made.
const upgradeExpires = "2099-12-31"

// upgradeWitnessed is the last number of type 31 in the witness file for the
// taxpayer with the fenced range.
const upgradeWitnessed = 3

// certificationArgs returns the flags of a service in certification.
func certificationArgs(shared []string, authority, roots string) []string {
	return append(append([]string{}, shared...),
		"--environment", "certification", "--authority", authority, "--authority-environment", "testecf", "--trust", roots,
		"--pace", "1000", "--rate-limit", "0", "--no-bootstrap", "--webhook-allow-private", "--log-level", "error")
}

func sandboxArgs(shared []string) []string {
	return append(append([]string{}, shared...), "--environment", "sandbox", "--rate-limit", "0", "--no-bootstrap", "--log-level", "error")
}

// A sale has the values that differ between the invoices of the fixture.
type sale struct {
	externalID string
	kind       string // 31 or 32
	buyer      string // RNC; empty for a final consumer
	large      bool   // 354,000.00 in place of 590.00
	scenario   string // of the sandbox
}

// request returns the body of the creation.
func (s sale) request() string {
	changes := []string{`"32"`, `"` + s.kind + `"`}
	if s.buyer != "" {
		changes = append(changes, `"legal_name": "Consumidor final"`, `"tax_id": "`+s.buyer+`", "legal_name": "Comprador `+s.buyer+`"`)
	}
	if s.large {
		changes = append(changes, "250.00", "150000.00", "500.00", "300000.00", "90.00", "54000.00", "590.00", "354000.00")
	}
	return strings.NewReplacer(changes...).Replace(harness.Invoice(s.externalID))
}

// create registers an invoice under an idempotency key.
func (c fixtureCredential) create(t *testing.T, base string, s sale) harness.Answer {
	t.Helper()
	header := []string{"Idempotency-Key", "key-" + s.externalID}
	if s.scenario != "" {
		header = append(header, "Sandbox-Scenario", s.scenario)
	}
	return c.do(t, base, http.MethodPost, "invoices", s.request(), header...)
}

// becomes waits until the document of an invoice has a status, and returns it.
func (c fixtureCredential) becomes(t *testing.T, base, externalID, status string) documentRead {
	t.Helper()
	var read documentRead
	defer func() {
		if read.Status != status {
			t.Logf("%s is %s under %q", externalID, read.Status, read.ENCF)
		}
	}()
	harness.Eventually(t, time.Minute, externalID+" becomes "+status, func() bool {
		read = c.document(t, base, externalID)
		return read.Status == status
	})
	return read
}

// send posts a message of a source, signed now.
func (s fixtureSource) send(t *testing.T, base string) harness.Answer {
	t.Helper()
	return postSigned(t, base+"/v1/events/inbound/"+s.ID, s.Secret, s.MessageID, s.Message)
}

// postSigned posts a message to the address of a source, signed now with its secret.
func postSigned(t *testing.T, url, secret, id, body string) harness.Answer {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := library.Sign(id, now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&harness.Client{HTTP: harness.HTTP}).Send(t.Context(), http.MethodPost, url, body,
		"webhook-id", id, "webhook-timestamp", strconv.FormatInt(now.Unix(), 10), "webhook-signature", signature)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// commercialResponse returns the message of a source with the signed response of a
// buyer.
func commercialResponse(encf, xml string) string {
	return fmt.Sprintf(`{"type":"ecf.commercial_response","timestamp":"2026-11-15T00:00:00Z","data":{"encf":%q,"xml_base64":%q}}`,
		encf, base64.StdEncoding.EncodeToString([]byte(xml)))
}

// A gatedAuthority is a proxy in front of a simulator that does not have the
// documents of the fixture. It blocks every call until it is opened. Then it answers
// "accepted" for the track ids of the fixture, and passes the other calls on.
type gatedAuthority struct {
	url    string
	open   func()
	gate   chan struct{}
	tracks map[string]string // e-NCF by track id
	pass   http.Handler
}

func newGatedAuthority(t *testing.T, simulator string, invoices []fixtureInvoice) *gatedAuthority {
	t.Helper()
	target, err := url.Parse(simulator)
	if err != nil {
		t.Fatal(err)
	}
	a := &gatedAuthority{gate: make(chan struct{}), tracks: map[string]string{}, pass: httputil.NewSingleHostReverseProxy(target)}
	a.open = sync.OnceFunc(func() { close(a.gate) })
	for _, inv := range invoices {
		if inv.TrackID != "" {
			a.tracks[inv.TrackID] = inv.ENCF
		}
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(a.open) // before the server waits for its calls
	a.url = server.URL
	return a
}

func (a *gatedAuthority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-a.gate:
	case <-r.Context().Done():
		return
	}
	if strings.Contains(strings.ToLower(r.URL.Path), "/consultaresultado/") {
		for name, values := range r.URL.Query() {
			if encf, ok := a.tracks[values[0]]; ok && strings.EqualFold(name, "trackid") {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				_, _ = fmt.Fprintf(w, `{"trackId":%q,"codigo":"1","estado":"Aceptado","rnc":%q,"encf":%q,"secuenciaUtilizada":true,`+
					`"fechaRecepcion":"11/15/2026 9:00:00 AM","mensajes":[]}`, values[0], upgradeIssuer, encf)
				return
			}
		}
	}
	a.pass.ServeHTTP(w, r)
}
