package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	marketIssuer = "199000013"
	marketBuyer  = "199000021"
	response     = "fiscal_document.commercial_response"
)

// A market is a town where two documents were sold to a buyer who responds.
type market struct {
	*liveTown
	*listener
	server *served
}

func newMarket(t *testing.T, address string) *market {
	t.Helper()
	w := newLiveTown(t, address, "happy")
	if err := w.sim.AddTaxpayer(simulator.Baseline(marketBuyer, "00199000019", "2027-12-31")); err != nil {
		t.Fatal(err)
	}
	m := &market{liveTown: w, listener: w.hook(t), server: serve(t, w.args...)}
	var base atomic.Pointer[string]
	base.Store(&m.server.base)
	for _, n := range []int{0, 2} { // the even ones are to the buyer
		w.sell(t.Context(), t, &base, n)
	}
	eventually(t, time.Minute, "every document comes to its end", func() bool { return w.settled(t, m.server.base) })
	return m
}

// respond has the buyer respond to a document, and asserts the answer.
func (m *market) respond(t *testing.T, p simulator.Push, status int) *simulator.Pushed {
	t.Helper()
	p.Issuer = marketIssuer
	done, err := m.sim.SendACECF(t.Context(), marketBuyer, p)
	if err != nil {
		t.Fatal(err)
	}
	if done.Status != status {
		t.Errorf("%+v: %d %s, want %d", p, done.Status, done.Answer, status)
	}
	return done
}

// told waits until the integrator was told of responses so many times, and
// returns the last.
func (m *market) told(t *testing.T, times int) arrival {
	t.Helper()
	eventually(t, 30*time.Second, "the response is told", func() bool { return len(m.arrivals(response)) >= times })
	return m.arrivals(response)[times-1]
}

func (m *market) status(t *testing.T, url string, want int) {
	t.Helper()
	if got, err := get(t.Context(), url); err != nil || got != want {
		t.Errorf("%s: %d, %v, want %d", url, got, err, want)
	}
}

// A buyer responds to a document: its integrator is told, with the reason. What
// is forged has no effect. It is so beside the API, and at a listener of its own.
func TestS17CommercialResponse(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		m := newMarket(t, address)
		base := m.server.base
		m.status(t, base+"/FE/Autenticacion/API/Semilla", http.StatusOK)
		for _, hostile := range []string{"altered", "unsigned"} {
			m.respond(t, simulator.Push{URL: base, ENCF: "E310000000001", Hostile: hostile}, http.StatusBadRequest)
		}
		rejection := m.respond(t, simulator.Push{URL: base, Auth: base, ENCF: "E310000000001", Reject: true, Reason: "Precio distinto"}, http.StatusOK)
		told := m.told(t, 1)
		if d := told.Data; d.ENCF != "E310000000001" || d.Status != fiscal.Accepted || d.PreviousStatus != "" || d.Result != "rejected" || d.Reason != "Precio distinto" {
			t.Errorf("%s", told.body)
		}
		if got := m.read(t, told.Data.Links.Self); !strings.Contains(got, "Rechazo comercial: Precio distinto") {
			t.Errorf("%s", got)
		}
		if got := m.read(t, base+"/v1/taxpayers/"+m.client.taxpayer+"/events"); !strings.Contains(got, string(told.body)) {
			t.Errorf("the feed does not have it as it was sent: %s", got)
		}
		// A relay passes the same on: it is heard once, and says nothing new.
		source := m.operate(t, "source", "create", "--taxpayer", m.client.taxpayer, "--environment", "certification", "--base-url", base)
		for _, duplicate := range []string{"false", "true"} {
			if got := relay(t, source, rejection); got.status != http.StatusAccepted || !strings.Contains(got.body, `"duplicate":`+duplicate) {
				t.Errorf("%d %s, want duplicate %s", got.status, got.body, duplicate)
			}
		}
		// A supplier gets the answer of the taxpayer that it names, signed.
		sent, err := m.sim.SendECF(t.Context(), marketBuyer, simulator.Push{URL: base, Buyer: marketIssuer})
		if err != nil || sent.Status != http.StatusOK || !strings.Contains(sent.Answer, "<CodigoMotivoNoRecibido>1<") || !strings.Contains(sent.Answer, "<Signature") {
			t.Errorf("%+v, %v", sent, err)
		}
		// The operator has it told once more, under the same id.
		if got := m.operate(t, "webhook", "replay", m.endpoint, "--event", told.ID); got["events"] != 1.0 {
			t.Errorf("replayed %v", got)
		}
		if again := m.told(t, 2); again.ID != told.ID {
			t.Errorf("replayed as %s, was %s", again.ID, told.ID)
		}
		if got := m.operate(t, "webhook", "test", m.endpoint, "--webhook-allow-private"); got["delivered"] != true || got["http_status"] != 204.0 {
			t.Errorf("test %v", got)
		}

		m.elsewhere(t)
		feed, err := storetest.Open(t, address, time.Now).Feed(t.Context(), store.Scope{Environment: fiscal.Certification, TaxpayerID: m.client.taxpayer}, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		feed = slices.DeleteFunc(feed, func(n store.Event) bool { return n.Kind != response })
		if len(feed) != 2 {
			t.Errorf("%d responses are told of, want 2", len(feed))
		}
	})
}

// elsewhere has the service receive at a listener of its own, which has nothing
// else.
func (m *market) elsewhere(t *testing.T) {
	t.Helper()
	m.server.signal(t, syscall.SIGINT)
	if code := m.server.ended(t, 30*time.Second); code != exitOK {
		t.Errorf("exit code %d\n%s", code, m.server.log)
	}
	m.server = serve(t, append(m.args, "--receiver-listen", "127.0.0.1:0")...)
	own := submatch(m.server.greeting, `Receiver (\S+)/fe`)
	m.status(t, own+"/fe/Autenticacion/api/Semilla", http.StatusOK)
	for _, nowhere := range []string{m.server.base + "/fe/autenticacion/api/semilla", own + "/livez", own + "/v1/openapi.json"} {
		m.status(t, nowhere, http.StatusNotFound)
	}
	m.respond(t, simulator.Push{URL: own, Auth: own, ENCF: "E310000000002"}, http.StatusOK)
	if d := m.told(t, 3).Data; d.ENCF != "E310000000002" || d.Result != "accepted" || d.Reason != "" {
		t.Errorf("%+v", d)
	}
}

// relay posts what a buyer has sent, signed by a source.
func relay(t *testing.T, source map[string]any, sent *simulator.Pushed) answer {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(fmt.Sprint(source["secret"]))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	body := fmt.Sprintf(`{"type":"ecf.commercial_response","timestamp":%q,"data":{"encf":%q,"xml_base64":%q}}`,
		now.UTC().Format(time.RFC3339), sent.ENCF, base64.StdEncoding.EncodeToString([]byte(sent.XML)))
	signature, err := library.Sign("msg_1", now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprint(source["url"]), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", "msg_1")
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	r.Header.Set("webhook-signature", signature)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(got)}
}

// read reads a resource of the API.
func (w *liveTown) read(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.client.do(r)
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, got.status, got.body, err)
	}
	return got.body
}
