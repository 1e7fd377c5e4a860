package systemtest

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// An arrival is one event as an integrator received it.
type arrival struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		ID             string        `json:"id"`
		ExternalID     string        `json:"external_id"`
		Status         fiscal.Status `json:"status"`
		PreviousStatus fiscal.Status `json:"previous_status"`
		Sequence       int64         `json:"sequence"`
		ENCF           string        `json:"encf"`
		Links          struct {
			Self string `json:"self"`
		} `json:"links"`
		Result string `json:"result"`
		Reason string `json:"reason"`
		Signer string `json:"signer"`
	} `json:"data"`
	body []byte
}

// A hookListener is the server of an integrator. It verifies each event with a
// library that is not ours, and keeps it.
type hookListener struct {
	t        *testing.T
	url      string
	endpoint string
	library  *standardwebhooks.Webhook
	// before is called before an arrival is answered. The function that it returns
	// is called after the answer.
	before func(arrival) (after func())

	mu  sync.Mutex
	all []arrival
}

// listen starts the server of an integrator and creates an endpoint for every kind
// of event.
func (e *env) listen(t *testing.T) *hookListener {
	t.Helper()
	l := &hookListener{t: t}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.url = server.URL
	e.args = append(e.args, "--webhook-allow-private")
	made := e.operate(t, "webhook", "create", "--taxpayer", e.client.Taxpayer, "--environment", "certification", "--url", l.url, "--event", "*", "--webhook-allow-private")
	l.endpoint, _ = made["id"].(string)
	secret, _ := made["secret"].(string)
	var err error
	if l.library, err = standardwebhooks.NewWebhook(secret); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *hookListener) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a := arrival{}
	var err error
	if a.body, err = io.ReadAll(r.Body); err != nil {
		return // the service was killed
	}
	if err := l.library.Verify(a.body, r.Header); err != nil {
		l.t.Errorf("%v: %s", err, a.body)
	}
	if err := json.Unmarshal(a.body, &a); err != nil || a.ID != r.Header.Get("webhook-id") {
		l.t.Errorf("%v: webhook-id %s of %s", err, r.Header.Get("webhook-id"), a.body)
	}
	l.mu.Lock()
	l.all = append(l.all, a)
	l.mu.Unlock()
	if l.before != nil {
		if after := l.before(a); after != nil {
			defer after()
		}
	}
	rw.WriteHeader(http.StatusNoContent)
	_ = http.NewResponseController(rw).Flush() // a killed service sends the event again
}

// arrivals returns the events of a kind that arrived, or all events for an empty
// kind.
func (l *hookListener) arrivals(kind string) []arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(a arrival) bool { return kind != "" && a.Type != kind })
}

// servicePort matches the address of the service in the links of an event. It
// changes with every start.
var servicePort = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// missing returns which events about the invoices have not arrived, and checks that
// repeated events have the same content. The creation of an invoice has no event.
func (l *hookListener) missing(s *store.Store, invoices []store.Invoice) (missing []string) {
	l.t.Helper()
	bodies, sequences := map[string][]byte{}, map[string][]int64{}
	for _, a := range l.arrivals("") {
		stored := servicePort.ReplaceAll(a.body, nil)
		body, again := bodies[a.ID]
		if again && !bytes.Equal(body, stored) {
			l.t.Errorf("two bodies under %s:\n%s\n%s", a.ID, body, stored)
		}
		bodies[a.ID] = stored
		if !again && a.Data.PreviousStatus != "" {
			sequences[a.Data.ID] = append(sequences[a.Data.ID], a.Data.Sequence)
		}
	}
	for _, inv := range invoices {
		var want []int64
		for n := int64(2); n <= inv.Revision; n++ {
			want = append(want, n)
		}
		slices.Sort(sequences[inv.DocumentID])
		if diff := cmp.Diff(want, sequences[inv.DocumentID]); diff != "" {
			missing = append(missing, inv.ExternalID+" (-want +got):\n"+diff)
		}
	}
	for after := int64(0); ; {
		feed, err := s.Feed(l.t.Context(), invoices[0].Scope, after, 1000)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(feed) == 0 {
			return missing
		}
		for _, n := range feed {
			after = n.Number
			if !bytes.Equal(bodies[n.ID], n.Body) {
				missing = append(missing, n.Kind+" "+n.ID)
			}
		}
	}
}

// The service is killed between the delivery of an event and its record. It must
// send the same event again, so that every change of status arrives under one id.
// LIVE_KILLS and LIVE_DOCUMENTS make the test longer.
func TestKilledServiceDeliversEveryEvent(t *testing.T) {
	t.Parallel()
	kills, documents := setting(t, "LIVE_KILLS", 2), setting(t, "LIVE_DOCUMENTS", 8)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, "happy")
		l := w.listen(t)
		w.args = append(w.args, "--pace", "1000") // the service soon asks about documents in doubt
		var server atomic.Pointer[harness.Server]
		var base atomic.Pointer[string]
		start := func() {
			s := harness.Serve(t, w.args...)
			base.Store(&s.Base)
			server.Store(s)
		}
		var unrecorded []string // events that were sent and cannot have been recorded
		var countdown atomic.Int64
		fired := make(chan struct{}, 1)
		var mu sync.Mutex
		l.before = func(a arrival) func() {
			if countdown.Add(-1) != 0 {
				return nil
			}
			kill := func() {
				server.Load().Signal(t, syscall.SIGKILL)
				fired <- struct{}{}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(unrecorded) > 0 && rand.IntN(2) == 0 {
				return kill // after the answer: the event may have been recorded
			}
			unrecorded = append(unrecorded, a.ID)
			kill()
			return nil
		}
		start()
		created := make(chan struct{})
		go func() {
			defer close(created)
			for n := range documents {
				w.createInvoice(t.Context(), t, &base, n)
			}
		}()
		for range kills {
			countdown.Store(1 + rand.Int64N(4))
			select {
			case <-fired:
			case <-time.After(time.Minute):
				t.Fatal("no event arrives")
			}
			server.Load().Ended(t)
			start()
		}
		<-created
		harness.Eventually(t, time.Minute, "every document has its final status", func() bool { return w.isSettled(t, *base.Load()) })
		w.checkDocuments(t, documents)
		s := storetest.Open(t, address, time.Now)
		var invoices []store.Invoice
		for n := range documents {
			inv, err := s.InvoiceByExternalID(t.Context(), store.Scope{Environment: fiscal.Certification, TaxpayerID: w.client.Taxpayer}, "ext-"+strconv.Itoa(n))
			if err != nil {
				t.Fatal(err)
			}
			invoices = append(invoices, inv)
		}
		var missing []string
		deadline := time.Now().Add(30 * time.Second)
		for missing = l.missing(s, invoices); len(missing) > 0 && time.Now().Before(deadline); missing = l.missing(s, invoices) {
			time.Sleep(50 * time.Millisecond)
		}
		for _, m := range missing {
			t.Error(m)
		}
		for _, id := range unrecorded { // they arrive again when the lease of the killed process ends
			harness.Eventually(t, time.Minute, "event "+id+", which was not recorded, arrives again", func() bool {
				return len(slices.DeleteFunc(l.arrivals(""), func(a arrival) bool { return a.ID != id })) > 1
			})
		}
	})
}

// The sandbox emits no events and has no receiver.
func TestSandboxEmitsNoEvents(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		shared := []string{"--data", t.TempDir(), "--database", address}
		server := harness.Serve(t, append(shared, "--webhook-allow-private")...)
		c := server.Client(t)
		if got, err := c.Create(t.Context(), server.Base, "key", "ext", "Sandbox-Scenario", "rejected"); err != nil || got.Status != http.StatusAccepted {
			t.Fatalf("%+v, %v", got, err)
		}
		s := storetest.Open(t, address, time.Now)
		scope := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: c.Taxpayer}
		harness.Eventually(t, 30*time.Second, "the scenario has reached its status", func() bool {
			inv, err := s.InvoiceByExternalID(t.Context(), scope, "ext")
			return err == nil && inv.Status == fiscal.Rejected
		})
		if feed, err := s.Feed(t.Context(), scope, 0, 10); err != nil || len(feed) > 0 {
			t.Errorf("%d events, %v", len(feed), err)
		}
		if status, err := harness.Status(t.Context(), server.Base+"/fe/autenticacion/api/semilla"); err != nil || status != http.StatusNotFound {
			t.Errorf("the seed of the receiver: %d, %v", status, err)
		}
	})
}
