package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/node/nodetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAConfigMustBeComplete(t *testing.T) {
	t.Parallel()
	if n, err := node.Open(t.Context(), node.Config{}); err == nil {
		t.Errorf("a node without a store: %+v", n)
	}
}

// send sends a request to a handler, and returns the status and the body of the answer.
func send(t *testing.T, h http.Handler, r *http.Request) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(t.Context()))
	return w.Code, w.Body.String()
}

func get(t *testing.T, h http.Handler, path string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("Accept", "text/html")
	status, _ := send(t, h, r)
	return status
}

// The handlers of a node serve what belongs to them, and the paths below that of the public
// address as well.
func TestWhatEachHandlerServes(t *testing.T) {
	t.Parallel()
	open := func(c node.Config) *node.Node {
		return nodetest.Open(t, storetest.Address(t, "sqlite"), time.Now, c)
	}
	console := func(apart bool) *node.ConsoleConfig {
		return &node.ConsoleConfig{BaseURL: "https://example.com/invoices", Apart: apart, Exports: t.TempDir()}
	}
	together := open(node.Config{BaseURL: "https://example.com/invoices", Console: console(false), KeepRequests: true})
	apart := open(node.Config{Environment: fiscal.Production, Console: console(true), ReceiverURL: "https://receiver.example"})
	for _, c := range []struct {
		what    string
		handler http.Handler
		path    string
		want    int
	}{
		{"a sandbox", together.Handler(), "/livez", http.StatusOK},
		{"a sandbox", together.Handler(), "/", http.StatusSeeOther},
		{"a sandbox", together.Handler(), "/invoices", http.StatusSeeOther},
		{"a sandbox", together.Handler(), "/invoices/docs", http.StatusOK},
		{"a sandbox", together.Handler(), "/invoices/livez", http.StatusNotFound},
		{"a sandbox", together.Handler(), "/console/", http.StatusSeeOther},
		{"a sandbox", together.Handler(), "/fe/autenticacion/api/semilla", http.StatusNotFound},
		{"production", apart.Handler(), "/console/", http.StatusNotFound},
		{"production", apart.Handler(), "/fe/autenticacion/api/semilla", http.StatusNotFound},
		{"the console of production", apart.ConsoleHandler(), "/console/", http.StatusSeeOther},
		{"the receiver of production", apart.ReceiverHandler(), "/fe/autenticacion/api/semilla", http.StatusOK},
		{"the receiver of production", apart.ReceiverHandler(), "/livez", http.StatusNotFound},
		{"the metrics of production", apart.MetricsHandler(), "/metrics", http.StatusOK},
		{"the metrics of production", apart.MetricsHandler(), "/livez", http.StatusNotFound},
	} {
		if got := get(t, c.handler, c.path); got != c.want {
			t.Errorf("%s answers %d to %s, want %d", c.what, got, c.path, c.want)
		}
	}
	for _, first := range []bool{true, false} {
		link, err := together.InviteOperator(t.Context(), "demo", "demo@localhost")
		if err != nil || strings.HasPrefix(link, "https://example.com/invoices/console/") != first {
			t.Errorf("the link of the first operator: %q, %v", link, err)
		}
	}
}

// A node serves until its context ends, then fails its readiness, drains and stops its work.
func TestANodeServesUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	n := nodetest.Open(t, storetest.Address(t, "sqlite"), time.Now, node.Config{KeepRequests: true, Console: &node.ConsoleConfig{BaseURL: "http://console.example", Exports: t.TempDir()}})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	drained, ended, client := make(chan int, 1), make(chan error, 1), &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	ready := func(ctx context.Context) int {
		r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+listener.Addr().String()+"/readyz", nil)
		if err != nil {
			return 0
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.Copy(io.Discard, answer.Body) // the status says all
		return answer.StatusCode
	}
	go func() {
		ended <- n.Serve(ctx, []node.Server{{Listener: n.Limit(listener), Handler: n.Handler()}}, func(ctx context.Context) { drained <- ready(ctx) })
	}()
	if got := ready(t.Context()); got != http.StatusOK {
		t.Errorf("a running node answers %d", got)
	}
	stop()
	if got := <-drained; got != http.StatusServiceUnavailable {
		t.Errorf("a node that drains answers %d", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := ready(t.Context()); got != 0 {
		t.Errorf("a stopped node answers %d", got)
	}
}

// A liveNode is a node of production that a test drives.
type liveNode struct {
	*node.Node
	t     *testing.T
	clock *storetest.Clock
	sim   *livetest.Authority
	scope store.Scope
	key   string
}

func openLive(t *testing.T, address string) *liveNode {
	t.Helper()
	l := &liveNode{t: t, clock: storetest.NewClock()}
	l.sim = livetest.NewAuthority(t, l.clock.Now, livetest.Options{Receiver: true})
	c := nodetest.Live(l.sim)
	c.Witness, c.CompareRate, c.Guard = filepath.Join(t.TempDir(), "witness"), 600, netguard.Guard{Private: true}
	c.Console = &node.ConsoleConfig{BaseURL: "http://console.example", Exports: t.TempDir()}
	l.Node = nodetest.Open(t, address, l.clock.Now, c)
	l.scope = store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
	livetest.AddIssuer(t, l.Store, l.scope, l.sim.Identity, 100)
	key, _, err := access.NewCredentials(l.Store, l.Keyring, l.clock.Now).Issue(t.Context(), access.Terms{
		TaxpayerID: l.scope.TaxpayerID, Environment: fiscal.Production, Scopes: apikey.AllScopes(),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.key = key.Reveal()
	return l
}

// create creates an invoice through the API, and returns its id.
func (l *liveNode) create() string {
	l.t.Helper()
	r := httptest.NewRequestWithContext(l.t.Context(), http.MethodPost, "/v1/taxpayers/"+l.scope.TaxpayerID+"/invoices", strings.NewReader(`{
		"external_id": "X-1", "ecf_type": "31", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
		"buyer": {"legal_name": "Comprador, SRL", "tax_id": "`+livetest.BuyerRNC+`"},
		"lines": [{"line_id": "1", "description": "Cosa", "item_kind": "product", "quantity": "1", "unit_price": "1000", "discount": null,
			"taxes": [{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"}]}],
		"declared_totals": {"subtotal": "1000", "discount_total": "0", "tax_total": "180.00", "total": "1180.00"}}`))
	r.Header = http.Header{"Authorization": {"Bearer " + l.key}, "Idempotency-Key": {"k"}, "Content-Type": {"application/json"}}
	status, body := send(l.t, l.Handler(), r)
	var made struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusAccepted {
		l.t.Fatalf("%d %s", status, body)
	}
	return made.Data.ID
}

// step does every activity of the node once, a while later.
func (l *liveNode) step(later time.Duration) {
	l.t.Helper()
	l.clock.Advance(later)
	for _, a := range l.Activities() {
		if a.Step == nil {
			continue
		}
		if err := a.Step(l.t.Context()); err != nil {
			l.t.Fatalf("%s: %v", a.Name, err)
		}
	}
}

// Steps of the activities take an invoice from the API to the buyer, whose response comes
// back to the receiver. A day later the comparison finds the document at the authority.
func TestStepsTakeAnInvoiceToItsBuyer(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		l := openLive(t, address)
		id := l.create()
		var inv store.Invoice
		for range 100 {
			l.step(time.Minute)
			var err error
			if inv, err = l.Store.Invoice(t.Context(), l.scope, id); err != nil {
				t.Fatal(err)
			}
			if inv.Status == fiscal.Delivered {
				break
			}
		}
		if inv.Status != fiscal.Delivered || inv.ENCF != "E310000000001" {
			t.Fatalf("%s %s", inv.ENCF, inv.Status)
		}
		server := httptest.NewServer(l.Handler())
		defer server.Close()
		pushed, err := l.sim.SendACECF(t.Context(), livetest.BuyerRNC, simulator.Push{URL: server.URL, Auth: server.URL, Issuer: livetest.IssuerRNC, ENCF: inv.ENCF})
		if err != nil || pushed.Status != http.StatusOK {
			t.Fatalf("%+v, %v", pushed, err)
		}
		events, err := l.Feed.Read(t.Context(), l.scope, 0, 100)
		if err != nil || !slices.ContainsFunc(events, func(e store.Event) bool { return e.Kind == "fiscal_document.commercial_response" }) {
			t.Errorf("%+v, %v", events, err)
		}
		for range 10 {
			l.step(25 * time.Hour)
		}
		state, err := l.Store.Comparison(t.Context(), fiscal.Production)
		if err != nil || state.ComparedAt.IsZero() {
			t.Errorf("the comparison is at %+v, %v", state, err)
		}
		l.checkMetrics("fiscalhub_stage_seconds", "fiscalhub_authority_exchange_seconds", "fiscalhub_authority_circuit_open")
		r := l.Releaser()
		if released, err := r.Release(t.Context(), l.scope); err != nil || len(released) != 0 {
			t.Errorf("released %+v, %v", released, err)
		}
	})
}

// checkMetrics checks that the node has metrics whose names contain some words.
func (l *liveNode) checkMetrics(names ...string) {
	l.t.Helper()
	all, err := l.Metrics.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	var have []string
	for _, family := range all {
		have = append(have, family.GetName())
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			l.t.Errorf("%s is missing in %s", name, fmt.Sprint(have))
		}
	}
}
