package systemtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
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
// library that is not ours, and keeps those that it answers with 204.
type hookListener struct {
	t        *testing.T
	url      string
	endpoint string
	// before is called before an arrival is answered. The function that it returns
	// is called after the answer.
	before func(arrival) (after func())

	mu      sync.Mutex
	library *standardwebhooks.Webhook // nil: it verifies nothing
	status  int                       // of its answers
	all     []arrival
}

// newHookListener starts the server, at a free address if it gets none. It returns nil when
// another program listens there.
func newHookListener(t *testing.T, address string) *hookListener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		t.Logf("no webhook server: %v", err)
		return nil
	}
	l := &hookListener{t: t, url: "http://" + listener.Addr().String(), status: http.StatusNoContent}
	server := httptest.NewUnstartedServer(l)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return l
}

// listen starts the server of an integrator and creates an endpoint for every kind
// of event.
func (e *env) listen(t *testing.T) *hookListener {
	t.Helper()
	l := newHookListener(t, "")
	var secret string
	l.endpoint, secret = e.createEndpoint(t, l.url)
	l.trust(secret)
	return l
}

// createEndpoint creates an endpoint for every kind of event, which may be on this machine.
func (e *env) createEndpoint(t *testing.T, url string) (id, secret string) {
	t.Helper()
	e.args = append(e.args, "--webhook-allow-private")
	made := e.operate(t, "webhook", "create", "--taxpayer", e.client.Taxpayer, "--environment", "certification", "--url", url, "--event", "*", "--webhook-allow-private")
	return fmt.Sprint(made["id"]), fmt.Sprint(made["secret"])
}

// trust verifies events with the secret of an endpoint from now on.
func (l *hookListener) trust(secret string) {
	l.t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.library = library
}

// answer sets the status of its answers.
func (l *hookListener) answer(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = status
}

func (l *hookListener) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a := arrival{}
	var err error
	if a.body, err = io.ReadAll(r.Body); err != nil {
		return // the service was killed
	}
	if err := json.Unmarshal(a.body, &a); err != nil || a.ID != r.Header.Get("webhook-id") {
		l.t.Errorf("%v: webhook-id %s of %s", err, r.Header.Get("webhook-id"), a.body)
	}
	l.mu.Lock()
	library, status := l.library, l.status
	if status == http.StatusNoContent {
		l.all = append(l.all, a)
	}
	l.mu.Unlock()
	if library != nil {
		if err := library.Verify(a.body, r.Header); err != nil {
			l.t.Errorf("%v: %s", err, a.body)
		}
	}
	if l.before != nil {
		if after := l.before(a); after != nil {
			defer after()
		}
	}
	rw.WriteHeader(status)
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
		if diff := gocmp.Diff(want, sequences[inv.DocumentID]); diff != "" {
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

// awaitAll waits until every event about the invoices has arrived.
func (l *hookListener) awaitAll(s *store.Store, invoices []store.Invoice) {
	l.t.Helper()
	var missing []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if missing = l.missing(s, invoices); len(missing) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, m := range missing {
		l.t.Errorf("an event has not arrived: %s", m)
	}
}
