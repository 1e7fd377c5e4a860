package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// creation is the request of a creation. It is valid until a test adds defects.
type creation struct {
	method, taxpayer, tail, query string
	idem                          string
	header                        http.Header
	invoice                       map[string]any
	raw                           func([]byte) []byte // changes the bytes of the body at the end
	chunked                       bool

	// Defects of the credential.
	noCredential, broken, forged    bool
	elsewhere, exhausted, scopeless bool
	outside                         bool // of the allowed networks
	suspended                       bool
	draining                        bool
}

// defect is one way to make a creation fail, and the answer of the check.
type defect struct {
	step   float64 // position of the check; defects of one step have no order
	name   string
	put    func(*creation)
	status int
	code   string
	detail string // field of a detail that the answer must have
	needs  string // part of the request that another defect removes
	takes  string
}

// defects lists the defects in the order of the checks.
func defects() []defect {
	set := func(name, value string) func(*creation) {
		return func(a *creation) { a.header.Set(name, value) }
	}
	large := func(b []byte) []byte { return append(b, make([]byte, 1<<20)...) }
	return []defect{
		{step: 2, name: "draining", put: func(a *creation) { a.draining = true }, status: 503, code: "service_unavailable"},
		{step: 3, name: "unknown path", put: func(a *creation) { a.tail = "/invoices/" }, status: 404, code: "not_found"},
		{step: 4, name: "other method", put: func(a *creation) { a.method = http.MethodPut }, status: 405, code: "bad_request"},
		{step: 5, name: "no credential", put: func(a *creation) { a.noCredential = true }, status: 401, code: "unauthorized"},
		{step: 5, name: "broken checksum", put: func(a *creation) { a.broken = true }, status: 401, code: "unauthorized"},
		{step: 5, name: "another secret", put: func(a *creation) { a.forged = true }, status: 401, code: "unauthorized"},
		{step: 7, name: "another environment", put: func(a *creation) { a.elsewhere = true }, status: 403, code: "forbidden"},
		{step: 7, name: "an address that is not allowed", put: func(a *creation) { a.outside = true }, status: 403, code: "forbidden"},
		{step: 7, name: "suspended", put: func(a *creation) { a.suspended = true }, status: 403, code: "forbidden"},
		{step: 8, name: "used-up window", put: func(a *creation) { a.exhausted = true }, status: 429, code: "rate_limited"},
		{step: 9, name: "missing scope", put: func(a *creation) { a.scopeless = true }, status: 403, code: "forbidden"},
		{step: 10, name: "malformed taxpayer", put: func(a *creation) { a.taxpayer = "me" }, status: 400, code: "bad_request", detail: "taxpayer_id"},
		{step: 10, name: "another taxpayer", put: func(a *creation) { a.taxpayer = store.NewID() }, status: 403, code: "forbidden"},
		{step: 11, name: "unknown parameter", put: func(a *creation) { a.query = "?dry_run=true" }, status: 400, code: "bad_request", detail: "dry_run"},
		{step: 12, name: "no key", put: func(a *creation) { a.idem = "" }, status: 400, code: "bad_request", detail: "Idempotency-Key", takes: "key"},
		{step: 12.5, name: "unknown scenario", put: set("Sandbox-Scenario", "sunny"), status: 400, code: "bad_request"},
		{step: 13, name: "media type", put: set("Content-Type", "text/plain"), status: 415, code: "bad_request"},
		{step: 13, name: "coding", put: set("Content-Encoding", "gzip"), status: 415, code: "bad_request"},
		{step: 14, name: "too long", put: func(a *creation) { a.raw = large }, status: 413, code: "bad_request", takes: "body"},
		{step: 15, name: "too long, in chunks", put: func(a *creation) { a.raw, a.chunked = large, true }, status: 413, code: "bad_request", takes: "body"},
		{step: 16, name: "no JSON", put: func(a *creation) { a.raw = func(b []byte) []byte { return append(b, '}') } }, status: 400, code: "invalid_json", needs: "body"},
		{step: 17, name: "key used before", put: func(a *creation) { a.idem = "used" }, status: 409, code: "idempotency_mismatch", needs: "key"},
		{step: 18, name: "unknown member", put: func(a *creation) { a.invoice["extra"] = 1 }, status: 422, code: "validation_error", detail: "extra"},
		{step: 18, name: "wrong total", put: func(a *creation) { a.invoice["declared_totals"].(map[string]any)["total"] = "1.00" }, status: 422, code: "validation_error"},
		{step: 20, name: "tomorrow", put: func(a *creation) { a.invoice["issue_date"] = "2026-11-16" }, status: 422, code: "validation_error", detail: "issue_date"},
		{step: 21, name: "not ready", put: func(a *creation) { asFiscalCredit(a.invoice) }, status: 409, code: "operational_readiness_failed", detail: "certificate"},
		{step: 22, name: "external id taken", put: func(a *creation) { a.invoice["external_id"] = "taken" }, status: 409, code: "external_id_conflict"},
	}
}

// checkEnv is an environment in which every check can fail.
type checkEnv struct {
	*env
	drained *env
	keys    map[string]string
}

func checkEnvOptions() envOptions {
	c := newClock()
	return envOptions{
		clock: c, rateLimit: 1_000_000,
		// Both checks depend on stored data and on the date, as in production.
		plan: stubPlan{
			check: func(_ context.Context, inv *fiscal.Invoice) error { return inv.CheckDate(c.now(), fiscal.Date{}) },
			ready: func(t fiscal.Type) fiscal.Problems {
				if t != fiscal.FiscalCredit {
					return nil
				}
				return fiscal.Problems{{Field: "certificate", Code: "certificate.missing", Message: lang.Literal("none")}}
			},
		},
	}
}

func newCheckEnv(t *testing.T, e *env) *checkEnv {
	t.Helper()
	o := &checkEnv{env: e, keys: make(map[string]string)}
	o.drained = e.withService(t, func(*api.Options, *http.Server) {})
	o.drained.api.Drain()
	e.created(e.create("used", invoiceBody("of the used key")))
	e.created(e.create("k", invoiceBody("taken")))
	return o
}

// credential returns a key with the defects of a creation. It issues each kind of
// key once.
func (o *checkEnv) credential(t *testing.T, a *creation) string {
	t.Helper()
	if a.noCredential {
		return "-"
	}
	name := fmt.Sprint(a.elsewhere, a.outside, a.suspended, a.exhausted, a.scopeless)
	key := o.keys[name]
	if key == "" {
		terms := access.Terms{TaxpayerID: o.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes()}
		if a.elsewhere {
			terms.Environment = fiscal.Production
		}
		if a.scopeless {
			terms.Scopes = []apikey.Scope{apikey.InvoicesRead}
		}
		if a.exhausted {
			terms.RateLimit = 1
		}
		if a.outside {
			terms.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
		}
		made, stored, err := o.env.credentials().Issue(t.Context(), terms)
		o.must(err)
		key = made.Reveal()
		if a.suspended {
			o.suspend(store.CredentialSubject(stored.ID))
		}
		if a.exhausted {
			o.send(request{path: "invoices", key: key})
		}
		o.keys[name] = key
	}
	if a.forged {
		key = forgeKey(t, key)
	}
	if a.broken {
		key = key[:len(key)-1] + map[bool]string{true: "b", false: "a"}[strings.HasSuffix(key, "a")]
	}
	return key
}

func (o *checkEnv) with(t *testing.T, n int, put ...defect) response {
	t.Helper()
	a := &creation{
		method: http.MethodPost, taxpayer: o.taxpayer, tail: "/invoices", idem: fmt.Sprint("order-", n),
		header: http.Header{}, invoice: newInvoice(fmt.Sprint("order-", n)),
	}
	for _, d := range put {
		d.put(a)
	}
	text := invoiceBody("", func(v map[string]any) {
		for name := range v {
			delete(v, name)
		}
		for name, value := range a.invoice {
			v[name] = value
		}
	})
	if a.raw != nil {
		text = a.raw(text)
	}
	to := o.env
	if a.draining {
		to = o.drained
	}
	path := "/v1/taxpayers/" + a.taxpayer + a.tail + a.query
	r := request{method: a.method, path: path, key: o.credential(t, a), idem: a.idem, header: a.header, body: text}
	if a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", "application/json")
	}
	if !a.chunked {
		return to.send(r)
	}
	key := r.key
	if key == "-" {
		key = ""
	}
	var lines []string
	for name := range a.header {
		lines = append(lines, name+": "+a.header.Get(name))
	}
	if a.idem != "" {
		lines = append(lines, "Idempotency-Key: "+a.idem)
	}
	c := to.dial(t)
	return c.exchange(t, a.method, to.rawRequest(a.method, path, key, append(lines, "Transfer-Encoding: chunked")...)+
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text))
}

func (d defect) wants(t *testing.T, name string, a response) {
	t.Helper()
	if a.status != d.status || a.code() != d.code {
		t.Errorf("%s: want %d %s, got %s", name, d.status, d.code, a)
		return
	}
	if d.detail == "" {
		return
	}
	for _, p := range a.details(t) {
		if p.Field == d.detail {
			return
		}
	}
	t.Errorf("%s: no detail of %s in %s", name, d.detail, a)
}

// The answer to a request with two defects is that of the check that comes first.
func TestFirstCheckDecidesTheAnswer(t *testing.T) {
	eachEngine(t, checkEnvOptions(), func(t *testing.T, e *env) {
		o := newCheckEnv(t, e)
		if a := o.with(t, 0); a.status != http.StatusAccepted {
			t.Fatalf("without a defect: %s", a)
		}
		list, n := defects(), 1
		for _, d := range list {
			d.wants(t, d.name, o.with(t, n, d))
			n++
		}
		for i, first := range list {
			for _, second := range list[i+1:] {
				if first.step == second.step || (first.takes != "" && (first.takes == second.needs || first.takes == second.takes)) {
					continue // they are one check, or cannot be in one request
				}
				first.wants(t, first.name+" and "+second.name, o.with(t, n, first, second))
				n++
			}
		}
		if n < 250 {
			t.Errorf("only %d combinations", n)
		}
	})
}

// An address that failed too often gets 429 instead of 401; other answers stay.
func TestRateLimitOfAnAddressReplacesOnly401(t *testing.T) {
	eachEngine(t, checkEnvOptions(), func(t *testing.T, e *env) {
		o := newCheckEnv(t, e)
		for range 300 {
			e.send(request{path: "/nothing"})
		}
		for i, d := range defects() {
			if d.status == http.StatusUnauthorized {
				d.status, d.code = http.StatusTooManyRequests, "rate_limited"
			}
			d.wants(t, d.name, o.with(t, i, d))
		}
	})
}

// Reads have fewer checks, in the same order. A path that names a resource answers
// 404 instead of 403.
func TestReadsCheckInTheSameOrder(t *testing.T) {
	eachEngine(t, checkEnvOptions(), func(t *testing.T, e *env) {
		keys := map[apikey.Scope]string{}
		for _, s := range []apikey.Scope{apikey.WebhooksManage, apikey.InvoicesRead} {
			keys[s] = e.newKey(e.taxpayer, fiscal.Sandbox, s)
		}
		other := store.NewID()
		for _, o := range operations(t) {
			if !o.ofTaxpayer() || o.method != http.MethodGet {
				continue
			}
			malformed, foreign, query := http.StatusBadRequest, http.StatusForbidden, http.StatusBadRequest
			if o.named() {
				malformed, foreign, query = http.StatusNotFound, http.StatusNotFound, http.StatusNotFound
			}
			if o.webhooks() {
				query = http.StatusForbidden // the sandbox refuses all webhook operations
			}
			scopeless := keys[o.uselessScope()]
			for _, tt := range []struct {
				name, key, taxpayer, query string
				want                       int
			}{
				{"no scope, malformed taxpayer, bad query", scopeless, "me", "?x=1", http.StatusForbidden},
				{"no scope, another taxpayer", scopeless, other, "", http.StatusForbidden},
				{"malformed taxpayer, bad query", e.key, "me", "?x=1", malformed},
				{"another taxpayer, bad query", e.key, other, "?x=1", foreign},
				{"bad query, unknown resource", e.key, e.taxpayer, "?x=1", query},
			} {
				if a := e.send(request{path: o.pathFor(tt.taxpayer, other) + tt.query, key: tt.key}); a.status != tt.want {
					t.Errorf("%s, %s: want %d, got %s", o, tt.name, tt.want, a)
				}
			}
		}
	})
}

// statuses returns, for each status of the API, a function that causes it.
func statuses(t *testing.T, e *env) map[int]func(http.Header) response {
	t.Helper()
	post := func(idem string, text []byte, change ...func(http.Header)) func(http.Header) response {
		return func(h http.Header) response {
			for _, c := range change {
				c(h)
			}
			return e.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: text, header: h})
		}
	}
	get := func(e *env, key, path string) func(http.Header) response {
		return func(h http.Header) response { return e.send(request{path: path, key: key, header: h}) }
	}
	drained := e.withService(t, func(*api.Options, *http.Server) {})
	drained.api.Drain()
	limited, _, err := e.credentials().Issue(t.Context(), access.Terms{
		TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(), RateLimit: 1,
	})
	e.must(err)
	e.send(request{path: "invoices", key: limited.Reveal()})
	made := e.created(e.create("made", invoiceBody("made")))
	return map[int]func(http.Header) response{
		200: get(e, "", "invoices"),
		202: post("made", invoiceBody("made")),
		400: get(e, "", "invoices?limit=0"),
		401: get(e, "-", "invoices"),
		403: get(e, "", "/v1/taxpayers/"+store.NewID()+"/invoices"),
		404: get(e, "", "/v1/nothing"),
		405: func(h http.Header) response {
			return e.send(request{method: http.MethodDelete, path: "invoices", header: h})
		},
		409: get(e, "", "fiscal-documents/"+made.FiscalDocumentID+"/pdf"),
		413: post("k", make([]byte, 1<<20+1)),
		415: post("k", invoiceBody("a"), func(h http.Header) { h.Set("Content-Type", "text/plain") }),
		422: post("k", []byte(`{}`)),
		429: get(e, limited.Reveal(), "invoices"),
		500: post("k", invoiceBody("panic")),
		501: post("k", invoiceBody("fail")), // 500 by an error instead of a panic
		503: get(drained, "", "invoices"),
	}
}

// newFaultyPlan returns a plan that panics or fails for some external ids.
func newFaultyPlan() stubPlan {
	return stubPlan{check: func(_ context.Context, inv *fiscal.Invoice) error {
		switch inv.ExternalID {
		case "panic":
			panic(inv)
		case "fail":
			return errors.New("a bug")
		}
		return nil
	}}
}

func TestEveryAnswerHasTheCommonHeaders(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 1000, plan: newFaultyPlan()}, func(t *testing.T, e *env) {
		const valid = "req_00000000000000000000000000c0ffee"
		ids := map[string][]string{
			"valid":               {valid},
			"absent":              nil,
			"empty":               {""},
			"upper case":          {strings.ToUpper(valid)},
			"too short":           {valid[:35]},
			"too long":            {valid + "0"},
			"another form":        {"0192f3c1-7a4e-7b21-9c55-3d2e8f6a1b40"},
			"an attempt on logs":  {valid + `","level":"ERROR`},
			"repeated":            {valid, valid},
			"two different ones":  {valid, "req_" + strings.Repeat("0", 32)},
			"two in a line":       {valid + ", " + valid},
			"a space for a digit": {valid[:35] + " "},
		}
		for status, send := range statuses(t, e) {
			want := status
			if status == 501 {
				want = http.StatusInternalServerError
			}
			seen := make(map[string]bool)
			for name, lines := range ids {
				h := http.Header{}
				if lines != nil {
					h["X-Request-Id"] = lines
				}
				a := send(h)
				if a.status != want {
					t.Fatalf("%d, id %s: %s", status, name, a)
				}
				if a.header.Get("Idempotency-Replayed") == "" {
					wantCommonHeaders(t, e.clock.now(), a)
				}
				id := a.header.Get("X-Request-Id")
				if (id == valid) != (name == "valid") || seen[id] || len(a.header["X-Request-Id"]) != 1 {
					t.Errorf("%d, id %s: answered as %v", status, name, a.header["X-Request-Id"])
				}
				seen[id] = true
				retry, err := strconv.Atoi(a.header.Get("Retry-After"))
				if needs := want == 429 || want == 503; needs && (err != nil || retry < 1) {
					t.Errorf("%d: Retry-After %q", status, a.header.Get("Retry-After"))
				}
			}
		}
	})
}

// Probes, metrics and documentation are not counted.
func TestProbesHaveNoRateLimit(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 1000}, func(t *testing.T, e *env) {
		for _, path := range []string{"/livez", "/readyz", "/metrics", "/docs"} {
			a, err := e.getPlain(t, path)
			if err != nil || a.status != http.StatusOK || a.header.Get("RateLimit-Limit") != "" {
				t.Errorf("%s: %v %d %v", path, err, a.status, a.header)
			}
		}
		if a := e.send(request{path: "/v1/openapi.json", key: "-"}); a.status != http.StatusOK || a.header.Get("RateLimit-Limit") != "300" {
			t.Errorf("the OpenAPI document: %d %v", a.status, a.header)
		}
	})
}
