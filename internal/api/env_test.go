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
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/node/nodetest"
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

// envOptions configure an environment. The zero value is a sandbox without rate
// limits.
type envOptions struct {
	environment fiscal.Environment
	rateLimit   int64
	clock       *clock
	log         io.Writer
	now         func() time.Time
	plan        pipeline.Plan
	masterKey   string
	poster      notify.Poster // posts the test events of endpoints
	inbox       api.Inbox     // nil: an inbox.Inbox
	roots       *x509.CertPool
	requests    api.RequestLog // nil: requests are not logged
}

// env is a running service on an empty database, with one taxpayer and a
// credential that has all scopes.
type env struct {
	*node.Node
	t        *testing.T
	opt      envOptions
	log      *slog.Logger
	clock    *clock
	address  string // of the database, as store.Open takes it
	store    *store.Store
	api      *api.API
	capacity *capacity.Capacity
	registry *prometheus.Registry
	base     string // URL of the service
	taxpayer string
	key      string
	client   *http.Client
	openapi  *openapitest.Validator
}

// eachEngine runs a test in a new environment on each database engine.
func eachEngine(t *testing.T, opt envOptions, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, newEnv(t, address, opt)) })
}

// oneEngine runs a test in a new environment on SQLite. It is for answers that do not
// depend on the database, because most of them are given before it is asked.
func oneEngine(t *testing.T, opt envOptions, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	test(t, newEnv(t, storetest.Address(t, "sqlite"), opt))
}

// newEnv starts a service on a database, with a taxpayer and a credential.
func newEnv(t *testing.T, address string, opt envOptions) *env {
	t.Helper()
	if opt.masterKey == "" {
		opt.masterKey = filepath.Join(t.TempDir(), "master.key")
	}
	e := newNode(t, address, opt)
	e.taxpayer = e.newTaxpayer()
	e.key = e.newKey(e.taxpayer, e.opt.environment, apikey.AllScopes()...)
	return e
}

// newNode starts a service on a database that other nodes may use. It has no
// taxpayer and no credential.
func newNode(t *testing.T, address string, opt envOptions) *env {
	t.Helper()
	if opt.environment == "" {
		opt.environment = fiscal.Sandbox
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
	e := &env{t: t, opt: opt, clock: opt.clock, address: address, openapi: openapitest.New(t), log: slog.New(slog.NewJSONHandler(opt.log, nil))}
	config := node.Config{
		Environment: opt.environment, RateLimit: opt.rateLimit, Log: e.log, Roots: opt.roots, Poster: opt.poster,
		Capacity: capacity.New(capacity.DefaultLimits(1<<30, runtime.GOMAXPROCS(0))), Identities: &stubSigners{},
	}
	if opt.masterKey != "" {
		config.Keys = seal.NewKeys(opt.masterKey)
	}
	if config.Poster == nil {
		config.Poster = &stubPoster{}
	}
	if opt.plan != nil {
		config.Plan = func(pipeline.Plan) pipeline.Plan { return opt.plan }
	}
	e.Node = nodetest.Open(t, address, opt.now, config)
	e.store, e.api, e.capacity, e.registry = e.Store, e.API, e.Capacity, e.Metrics
	if opt.inbox != nil || opt.requests != nil {
		e.registry = prometheus.NewRegistry()
		var err error
		e.api, err = api.New(e.apiOptions(e.registry))
		e.must(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	e.must(err)
	e.base = "http://" + listener.Addr().String()
	server := api.NewServer(e.api.Handler(e.registry), e.log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { e.Pipeline.Run(ctx) })
	running.Go(func() { _ = server.Serve(e.Limit(listener)) })
	// The client may open more connections than it needs. The service closes those
	// that bring no header within 5 s, and the client must not use them then.
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, IdleConnTimeout: 3 * time.Second}
	e.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		cancel()
		running.Wait()
	})
	return e
}

// apiOptions returns the options of the API of the environment.
func (e *env) apiOptions(registry *prometheus.Registry) api.Options {
	o := e.APIOptions(registry)
	if e.opt.inbox != nil {
		o.Inbox = e.opt.inbox
	}
	o.RequestLog = e.opt.requests
	return o
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) newTaxpayer() string {
	e.t.Helper()
	now := e.opt.now()
	made := store.Taxpayer{
		ID: store.NewID(), RNC: "199000013", LegalName: "Distribuidora Palma Clara, SRL", Address: "Av. Inventada 1",
		IncomeType: "01", Phones: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(e.t.Context(), made) }))
	return made.ID
}

func (e *env) credentials() *access.Credentials {
	return access.NewCredentials(e.store, e.Keyring, e.opt.now)
}

func (e *env) newKey(taxpayer string, env fiscal.Environment, scopes ...apikey.Scope) string {
	e.t.Helper()
	key, _, err := e.credentials().Issue(e.t.Context(), access.Terms{TaxpayerID: taxpayer, Environment: env, Scopes: scopes})
	e.must(err)
	return key.Reveal()
}

// request is what a test sends. Empty fields get the values of a correct client.
type request struct {
	method      string
	path        string // below the taxpayer, or absolute with a leading slash
	key         string // credential; "-" sends none
	idem        string // Idempotency-Key
	header      http.Header
	body        []byte
	undescribed bool // the OpenAPI document does not allow the request, and the service bears it
}

// response is the answer of the service.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (a response) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// code returns the error code.
func (a response) code() string {
	var e struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &e)
	return e.Error.Code
}

// data decodes the member data.
func (a response) data(t *testing.T, into any) {
	t.Helper()
	e := struct {
		Data any `json:"data"`
	}{into}
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("%v in %s", err, a)
	}
}

// detail is one problem in an error.
type detail struct{ Field, Code, Message string }

// details returns the details of an error.
func (a response) details(t *testing.T) []detail {
	t.Helper()
	var e struct {
		Error struct {
			Details []detail `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("%v in %s", err, a)
	}
	return e.Error.Details
}

// send sends a request and checks the exchange against the OpenAPI document.
func (e *env) send(r request) response {
	e.t.Helper()
	a, err := e.try(r)
	if err != nil {
		e.t.Fatal(err)
	}
	return a
}

// try is send for requests that may fail, and for other goroutines.
func (e *env) try(r request) (response, error) {
	if r.method == "" {
		r.method = http.MethodGet
	}
	if !strings.HasPrefix(r.path, "/") {
		r.path = "/v1/taxpayers/" + e.taxpayer + "/" + r.path
	}
	req, err := http.NewRequestWithContext(e.t.Context(), r.method, e.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return response{}, err
	}
	if r.key == "" {
		r.key = e.key
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
	resp, err := e.client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, err
	}
	if !r.undescribed {
		e.openapi.Check(e.t, req, r.body, resp, body)
	}
	return response{resp.StatusCode, resp.Header, body}, nil
}

// create posts an invoice.
func (e *env) create(idem string, body []byte) response {
	e.t.Helper()
	return e.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: body})
}

// newInvoice returns a valid invoice of type 32, which tests may change.
func newInvoice(externalID string) map[string]any {
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

// invoiceBody returns a valid invoice with changes, as JSON.
func invoiceBody(externalID string, change ...func(map[string]any)) []byte {
	v := newInvoice(externalID)
	for _, c := range change {
		c(v)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// asFiscalCredit changes an invoice to type 31.
func asFiscalCredit(v map[string]any) {
	v["ecf_type"] = "31"
	v["buyer"] = map[string]any{"legal_name": "Ferretería El Tornillo Azul, SRL", "tax_id": "199000021"}
}

// resource is an invoice in the form of the contract.
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

// created fails the test unless a creation was answered 202, and returns the
// invoice.
func (e *env) created(a response) resource {
	e.t.Helper()
	if a.status != http.StatusAccepted {
		e.t.Fatalf("want 202, got %s", a)
	}
	var r resource
	a.data(e.t, &r)
	return r
}
