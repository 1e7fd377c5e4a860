package main

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
)

// An arrival is one event as it came to an integrator.
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
	} `json:"data"`
	body []byte
}

// A listener is the server of an integrator. It verifies all that comes with a
// library that is not ours, and keeps it.
type listener struct {
	t        *testing.T
	url      string
	endpoint string
	library  *standardwebhooks.Webhook
	// before is called with each arrival before it is answered, and what it
	// returns after that.
	before func(arrival) (after func())

	mu  sync.Mutex
	all []arrival
}

// hook gives the town an integrator that is told of everything.
func (w *liveTown) hook(t *testing.T) *listener {
	t.Helper()
	l := &listener{t: t}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.url = server.URL
	w.args = append(w.args, "--webhook-allow-private")
	made := w.operate(t, "webhook", "create", "--taxpayer", w.client.taxpayer, "--environment", "certification", "--url", l.url, "--event", "*", "--webhook-allow-private")
	l.endpoint, _ = made["id"].(string)
	secret, _ := made["secret"].(string)
	var err error
	if l.library, err = standardwebhooks.NewWebhook(secret); err != nil {
		t.Fatal(err)
	}
	return l
}

// operate runs an operator's command beside the service.
func (w *liveTown) operate(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return commandAnswer(t, append(args, w.shared...)...)
}

func (l *listener) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a := arrival{}
	var err error
	if a.body, err = io.ReadAll(r.Body); err != nil {
		return // of a service that was killed
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
	_ = http.NewResponseController(rw).Flush() // whoever is gone asks again
}

// arrivals are all that came, or those of a kind.
func (l *listener) arrivals(kind string) []arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(a arrival) bool { return kind != "" && a.Type != kind })
}

// servicePort is the address of the service in the link of an event: every start
// has another.
var servicePort = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// missing tells what is missing of the events about the invoices of a town, and
// asserts that what came is consistent. The creation is the first status of an
// invoice and has no event.
func (l *listener) missing(s *store.Store, invoices []store.Invoice) (missing []string) {
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
	feed, err := s.Feed(l.t.Context(), invoices[0].Scope, 0, 1000)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, n := range feed {
		if !bytes.Equal(bodies[n.ID], n.Body) {
			missing = append(missing, n.Kind+" "+n.ID)
		}
	}
	return missing
}

// A service that is killed after an event was sent, and before that is recorded,
// sends the same event again: every change of status arrives, each under one id.
// LIVE_KILLS and LIVE_DOCUMENTS make it longer.
func TestP101WebhooksSurviveKillNine(t *testing.T) {
	t.Parallel()
	kills, documents := setting(t, "LIVE_KILLS", 2), setting(t, "LIVE_DOCUMENTS", 8)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveTown(t, address, "happy")
		l := w.hook(t)
		w.args = append(w.args, "--pace", "1000") // what a kill leaves in doubt is asked about soon
		var server atomic.Pointer[served]
		var base atomic.Pointer[string]
		start := func() {
			s := serve(t, w.args...)
			base.Store(&s.base)
			server.Store(s)
		}
		var again []string // what was sent and cannot have been recorded
		var countdown atomic.Int64
		fired := make(chan struct{}, 1)
		var mu sync.Mutex
		l.before = func(a arrival) func() {
			if countdown.Add(-1) != 0 {
				return nil
			}
			kill := func() {
				server.Load().signal(t, syscall.SIGKILL)
				fired <- struct{}{}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(again) > 0 && rand.IntN(2) == 0 {
				return kill // it may or may not have been recorded
			}
			again = append(again, a.ID)
			kill()
			return nil
		}
		start()
		sold := make(chan struct{})
		go func() {
			defer close(sold)
			for n := range documents {
				w.sell(t.Context(), t, &base, n)
			}
		}()
		for range kills {
			countdown.Store(1 + rand.Int64N(4))
			select {
			case <-fired:
			case <-time.After(time.Minute):
				t.Fatal("nothing arrives")
			}
			server.Load().ended(t, 10*time.Second)
			start()
		}
		<-sold
		eventually(t, time.Minute, "every document comes to its end", func() bool { return w.settled(t, *base.Load()) })
		w.audit(t, documents)
		s := storetest.Open(t, address, time.Now)
		var invoices []store.Invoice
		for n := range documents {
			inv, err := s.InvoiceByExternalID(t.Context(), store.Scope{Environment: fiscal.Certification, TaxpayerID: w.client.taxpayer}, "ext-"+strconv.Itoa(n))
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
		for _, id := range again {
			if n := len(slices.DeleteFunc(l.arrivals(""), func(a arrival) bool { return a.ID != id })); n < 2 {
				t.Errorf("%s was never recorded, and came %d times", id, n)
			}
		}
	})
}

// What happens in the sandbox is told to nobody, and it receives nothing.
func TestSandboxTellsNobody(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		shared := []string{"--data", t.TempDir(), "--database", address}
		server := serve(t, append(shared, "--webhook-allow-private")...)
		c := newIntegrator(t, server)
		if got, err := c.create(t.Context(), server.base, "key", "ext", "Sandbox-Scenario", "rejected"); err != nil || got.status != http.StatusAccepted {
			t.Fatalf("%+v, %v", got, err)
		}
		s := storetest.Open(t, address, time.Now)
		scope := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: c.taxpayer}
		eventually(t, 30*time.Second, "the scenario has ended", func() bool {
			inv, err := s.InvoiceByExternalID(t.Context(), scope, "ext")
			return err == nil && inv.Status == fiscal.Rejected
		})
		if told, err := s.Feed(t.Context(), scope, 0, 10); err != nil || len(told) > 0 {
			t.Errorf("%d events, %v", len(told), err)
		}
		if status, err := get(t.Context(), server.base+"/fe/autenticacion/api/semilla"); err != nil || status != http.StatusNotFound {
			t.Errorf("a seed: %d, %v", status, err)
		}
	})
}
