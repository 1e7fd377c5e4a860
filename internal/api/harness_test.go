package api_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/openapi/openapitest"
)

// clock is a clock that tests set.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.set(time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC))
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) set(t time.Time)         { c.micros.Store(t.UnixMicro()) }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// options say how a world differs from the usual one: a sandbox without limits.
type options struct {
	env       fiscal.Environment
	rateLimit int64
	clock     *clock
	log       io.Writer
	now       func() time.Time
	plan      pipeline.Plan
	masterKey string
	poster    notify.Poster // of tests of endpoints
	relay     api.Inbox     // nil: the pipeline
	roots     *x509.CertPool
}

// world is a running service on an empty database, with one taxpayer and a
// credential that may do everything.
type world struct {
	t        *testing.T
	opt      options
	clock    *clock
	address  string // of the database
	store    *store.Store
	ring     *access.Keyring
	flow     *pipeline.Pipeline
	feed     *notify.Feed
	api      *api.API
	registry *prometheus.Registry
	base     string // of the service
	taxpayer string
	key      string
	client   *http.Client
	openapi  *openapitest.Validator
}

// each runs a test on a world of every engine.
func each(t *testing.T, opt options, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, start(t, address, opt)) })
}

// start starts a service on a database and gives it a taxpayer.
func start(t *testing.T, address string, opt options) *world {
	t.Helper()
	if opt.masterKey == "" {
		opt.masterKey = filepath.Join(t.TempDir(), "master.key")
	}
	w := node(t, address, opt)
	w.taxpayer = w.newTaxpayer()
	w.key = w.newKey(w.taxpayer, w.opt.env, apikey.AllScopes()...)
	return w
}

// node starts a service on a database that another one may be using.
func node(t *testing.T, address string, opt options) *world {
	t.Helper()
	if opt.env == "" {
		opt.env = fiscal.Sandbox
	}
	if opt.clock == nil {
		opt.clock = newClock()
	}
	if opt.log == nil {
		opt.log = io.Discard
	}
	if opt.now == nil {
		opt.now = opt.clock.now
	}
	w := &world{t: t, opt: opt, clock: opt.clock, address: address, registry: prometheus.NewRegistry(), openapi: openapitest.New(t)}
	w.store = storetest.Open(t, address, opt.now)
	ring, err := access.LoadKeyring(t.Context(), w.store, seal.NewKeys(opt.masterKey))
	w.must(err)
	w.ring = ring
	log := slog.New(slog.NewJSONHandler(opt.log, nil))
	if opt.plan == nil {
		opt.plan = pipeline.Plan(pipeline.Sandbox{})
		if opt.env != fiscal.Sandbox {
			opt.plan = registering(t, w.store, opt)
		}
	}
	w.feed = notify.NewFeed(w.store)
	w.flow, err = pipeline.New(pipeline.Options{Store: w.store, Plan: opt.plan, Env: opt.env, Now: opt.now, Log: log, OnCommit: w.feed.Wake})
	w.must(err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	w.base = "http://" + listener.Addr().String()
	w.api, err = api.New(w.apiOptions(log, w.registry))
	w.must(err)
	server := api.NewServer(w.api.Handler(w.registry), log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { w.flow.Run(ctx) })
	running.Go(func() { _ = server.Serve(api.LimitConnections(listener)) })
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	w.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		cancel()
		running.Wait()
	})
	return w
}

// apiOptions are what the world's service is made of.
func (w *world) apiOptions(log *slog.Logger, registry *prometheus.Registry) api.Options {
	opt := api.Options{
		Store: w.store, Pipeline: w.flow, Keyring: w.ring, Environment: w.opt.env, BaseURL: "https://invoices.example",
		RateLimit: w.opt.rateLimit, Now: w.opt.now, Log: log, Metrics: registry,
		Endpoints: w.endpoints(), Feed: w.feed, Sources: w.sources(), Inbox: w.opt.relay,
	}
	if opt.Inbox == nil {
		inbox, err := live.NewInbox(live.InboxOptions{Store: w.store, Env: w.opt.env, Pipeline: w.flow, Now: w.opt.now, Log: log, Roots: w.opt.roots})
		w.must(err)
		opt.Inbox = inbox
	}
	return opt
}

func (w *world) secrets() *access.Secrets {
	return access.NewSecrets(w.store, seal.NewKeys(w.opt.masterKey))
}

func (w *world) endpoints() *notify.Endpoints {
	post := w.opt.poster
	if post == nil {
		post = &poster{}
	}
	all, err := notify.NewEndpoints(notify.EndpointsOptions{Store: w.store, Secrets: w.secrets(), Poster: post, Now: w.opt.now})
	w.must(err)
	return all
}

func (w *world) sources() *notify.Sources {
	all, err := notify.NewSources(notify.SourcesOptions{Store: w.store, Secrets: w.secrets(), Now: w.opt.now})
	w.must(err)
	return all
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newTaxpayer() string {
	w.t.Helper()
	now := w.opt.now()
	made := store.Taxpayer{
		ID: store.NewID(), RNC: "199000013", LegalName: "Distribuidora Palma Clara, SRL", Address: "Av. Inventada 1",
		IncomeType: "01", Phones: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	w.must(w.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(w.t.Context(), made) }))
	return made.ID
}

func (w *world) credentials() *access.Credentials {
	return access.NewCredentials(w.store, w.ring, w.opt.now)
}

func (w *world) newKey(taxpayer string, env fiscal.Environment, scopes ...apikey.Scope) string {
	w.t.Helper()
	key, _, err := w.credentials().Issue(w.t.Context(), access.Terms{TaxpayerID: taxpayer, Environment: env, Scopes: scopes})
	w.must(err)
	return key.Reveal()
}

// request is what a test sends. What is empty is what a good client would say.
type request struct {
	method string
	path   string // below the taxpayer, or absolute with a leading slash
	key    string // credential; "-" sends none
	idem   string // Idempotency-Key
	header http.Header
	body   []byte
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// code is the code of an error answer.
func (a answer) code() string {
	var e struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &e)
	return e.Error.Code
}

// data decodes the data of an answer.
func (a answer) data(t *testing.T, into any) {
	t.Helper()
	e := struct {
		Data any `json:"data"`
	}{into}
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("%v in %s", err, a)
	}
}

// details are the problems of an error answer.
func (a answer) details(t *testing.T) []fiscal.Problem {
	t.Helper()
	var e struct {
		Error struct {
			Details []fiscal.Problem `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("%v in %s", err, a)
	}
	return e.Error.Details
}

// send makes one exchange and holds its answer against the OpenAPI document.
func (w *world) send(r request) answer {
	w.t.Helper()
	a, err := w.try(r)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// try is send for exchanges that may fail, and for other goroutines.
func (w *world) try(r request) (answer, error) {
	if r.method == "" {
		r.method = http.MethodGet
	}
	if !strings.HasPrefix(r.path, "/") {
		r.path = "/v1/taxpayers/" + w.taxpayer + "/" + r.path
	}
	req, err := http.NewRequestWithContext(w.t.Context(), r.method, w.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	if r.key == "" {
		r.key = w.key
	}
	if r.key != "-" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	if r.idem != "" {
		req.Header.Set("Idempotency-Key", r.idem)
	}
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	w.openapi.Check(w.t, req, r.body, resp, body)
	return answer{resp.StatusCode, resp.Header, body}, nil
}

// create posts an invoice.
func (w *world) create(idem string, body []byte) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: body})
}

// invoice is a valid request of type 32 as a value that tests change.
func invoice(externalID string) map[string]any {
	var v map[string]any
	if err := json.Unmarshal([]byte(`{
		"external_id": "", "ecf_type": "32", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
		"buyer": {"legal_name": "Consumidor final"},
		"lines": [{"line_id": "1", "description": "Café molido", "item_kind": "product", "quantity": "2", "unit_price": "250.00",
			"discount": null, "taxes": [{"code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18"}]}],
		"declared_totals": {"subtotal": "500.00", "discount_total": "0.00", "tax_total": "90.00", "total": "590.00"}
	}`), &v); err != nil {
		panic(err)
	}
	v["external_id"] = externalID
	return v
}

// body is an invoice as bytes.
func body(externalID string, change ...func(map[string]any)) []byte {
	v := invoice(externalID)
	for _, c := range change {
		c(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// credit makes an invoice one of type 31.
func credit(v map[string]any) {
	v["ecf_type"] = "31"
	v["buyer"] = map[string]any{"legal_name": "Ferretería El Tornillo Azul, SRL", "tax_id": "199000021"}
}

// resource is an invoice as the API answers it.
type resource struct {
	ID               string            `json:"id"`
	TaxpayerID       string            `json:"taxpayer_id"`
	ExternalID       string            `json:"external_id"`
	ECFType          string            `json:"ecf_type"`
	Status           string            `json:"status"`
	FiscalDocumentID string            `json:"fiscal_document_id"`
	Totals           map[string]string `json:"totals"`
	CreatedAt        string            `json:"created_at"`
	UpdatedAt        string            `json:"updated_at"`
}

// created asserts that a creation was accepted, and returns it.
func (w *world) created(a answer) resource {
	w.t.Helper()
	if a.status != http.StatusAccepted {
		w.t.Fatalf("want 202, got %s", a)
	}
	var r resource
	a.data(w.t, &r)
	return r
}
