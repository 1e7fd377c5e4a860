package openapitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const (
	taxpayer  = "0195d3a2-7c1e-7b40-9f15-3a6c2e8d4b01"
	invoices  = "/v1/taxpayers/" + taxpayer + "/invoices"
	documents = "/v1/taxpayers/" + taxpayer + "/fiscal-documents"
	invoiceID = "01960b54-9a3d-7e12-8c47-51f0d2a96e30"
	requestID = "req_6f1d0c9be2a74835a1f47b3cd8e05296"

	invoiceBody = `{"id":"` + invoiceID + `","taxpayer_id":"` + taxpayer + `","external_id":"A-1","ecf_type":"31",` +
		`"status":"accepted","fiscal_document_id":"01960b54-9a3d-7f68-b1d9-7e24c05a8f13","currency":"DOP",` +
		`"issue_date":"2026-04-10","totals":{"subtotal":"10.00","discount_total":"0.00","tax_total":"1.80",` +
		`"total":"11.80","paid":"11.80","balance":"0.00"},"created_at":"2026-04-10T14:02:11.482Z",` +
		`"updated_at":"2026-04-10T14:02:11.482Z"}`
	one     = `{"data":` + invoiceBody + `,"meta":{"request_id":"` + requestID + `"}}`
	page    = `{"data":[` + invoiceBody + `],"meta":{"request_id":"` + requestID + `","next_cursor":null}}`
	request = `{"external_id":"A-1","ecf_type":"31","issue_date":"2026-04-10","currency":"DOP","payment_type":"cash",` +
		`"buyer":{"legal_name":"Uno","tax_id":"199000021"},"lines":[{"line_id":"1","description":"Uno",` +
		`"item_kind":"product","quantity":"1","unit_price":"10.00","discount":null,` +
		`"taxes":[{"code":"ITBIS","label":"ITBIS 18%","rate_percent":"18"}]}],` +
		`"declared_totals":{"subtotal":"10.00","discount_total":"0.00","tax_total":"1.80","total":"11.80"}}`
)

func problem(code string) string {
	return `{"error":{"code":"` + code + `","message":"No.","request_id":"` + requestID + `"}}`
}

// exchange is a request and its answer.
type exchange struct {
	method, target string
	reqHeader      http.Header
	reqBody        string
	status         int
	header         http.Header
	body           string
}

func (x exchange) problems(v *Validator) []string {
	req := httptest.NewRequest(x.method, x.target, nil) //nolint:noctx // it is not sent
	req.Header = x.reqHeader
	return v.problems(req, []byte(x.reqBody), &http.Response{StatusCode: x.status, Header: x.header}, []byte(x.body))
}

func answered(method, target string, status int, body string) exchange {
	x := exchange{
		method: method, target: target, status: status, body: body,
		reqHeader: http.Header{},
		header: http.Header{
			"Content-Type":        {"application/json; charset=utf-8"},
			"X-Request-Id":        {requestID},
			"Ratelimit-Limit":     {"600"},
			"Ratelimit-Remaining": {"599"},
			"Ratelimit-Reset":     {"1775829540"},
		},
	}
	if status >= 400 {
		x.header.Set("Link", `</docs#error-not_found>; rel="help"`)
	}
	return x
}

func created() exchange {
	x := answered("POST", invoices, 202, one)
	x.reqBody = request
	x.reqHeader.Set("Idempotency-Key", "a-1")
	x.header.Set("Location", invoices+"/"+invoiceID)
	return x
}

func with(x exchange, name, value string) exchange {
	x.header.Set(name, value)
	return x
}

func TestCheckAcceptsDocumentedExchanges(t *testing.T) {
	t.Parallel()
	v := New(t)
	artifact := answered("GET", documents+"/"+invoiceID+"/pdf", 200, "%PDF-1.7")
	for name, value := range map[string]string{
		"Content-Type":        "application/pdf",
		"ETag":                `"sha256:` + strings.Repeat("0a", 32) + `"`,
		"Repr-Digest":         "sha-256=:" + strings.Repeat("A", 43) + "=:",
		"Content-Disposition": `attachment; filename="199000013E310000000157.pdf"`,
		"Cache-Control":       "private, no-cache",
		"Accept-Ranges":       "none",
	} {
		artifact.header.Set(name, value)
	}
	notModified := artifact
	notModified.status, notModified.body = 304, ""
	replay := with(created(), "Idempotency-Replayed", "true")
	replay.header.Set("X-Request-Id", "req_"+strings.Repeat("0", 32))
	ownID := created()
	ownID.reqHeader.Set("X-Request-Id", "mine")

	cases := map[string]exchange{
		"a creation":                    created(),
		"a replay, with the older id":   replay,
		"a request id that is replaced": ownID,
		"a page":                        answered("GET", invoices+"?limit=5&status=accepted", 200, page),
		"an invoice, id in upper case":  answered("GET", invoices+"/"+strings.ToUpper(invoiceID), 200, one),
		"HEAD":                          answered("HEAD", invoices, 200, ""),
		"a malformed id":                answered("GET", invoices+"/x", 404, problem("not_found")),
		"a PDF":                         artifact,
		"not modified":                  notModified,
		"an artifact of the sandbox":    answered("GET", documents+"/"+invoiceID+"/xml", 409, problem("artifact_not_ready")),
		"no credential":                 with(answered("GET", invoices, 401, problem("unauthorized")), "WWW-Authenticate", `Bearer realm="fh"`),
		"a missing scope":               with(answered("GET", invoices, 403, problem("forbidden")), "WWW-Authenticate", `Bearer error="insufficient_scope", scope="invoices.write ecf.submit"`),
		"an unknown path":               answered("GET", "/v2/x", 404, problem("not_found")),
		"another spelling of a path":    answered("GET", "/v1/taxpayers/a%2Fb/invoices", 404, problem("not_found")),
		"another method":                with(answered("DELETE", invoices, 405, problem("bad_request")), "Allow", "GET, HEAD, POST"),
		"HEAD of an unknown path":       answered("HEAD", "/nothing", 404, ""),
		"an absolute address":           answered("GET", "http://127.0.0.1:49152"+invoices, 200, page),
		"the document":                  answered("GET", "/v1/openapi.json", 200, `{"openapi":"3.1.0","info":{},"paths":{}}`),
		"overload on an unknown path":   with(answered("GET", "/x", 503, problem("service_unavailable")), "Retry-After", "1"),
	}
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range x.problems(v) {
				t.Error(p)
			}
		})
	}
}

func TestCheckReportsEveryViolation(t *testing.T) {
	t.Parallel()
	v := New(t)
	body := func(old, text string) exchange {
		x := created()
		x.body = strings.Replace(x.body, old, text, 1)
		return x
	}
	sent := func(old, text string) exchange {
		x := created()
		x.reqBody = strings.Replace(x.reqBody, old, text, 1)
		return x
	}
	without := func(name string) exchange {
		x := created()
		x.header.Del(name)
		return x
	}
	twice := created()
	twice.header.Add("RateLimit-Limit", "600")
	keyless := created()
	keyless.reqHeader.Del("Idempotency-Key")
	details := problem("validation_error")

	cases := map[string]struct {
		exchange exchange
		want     []string
	}{
		"undocumented status":              {answered("GET", invoices, 404, problem("not_found")), []string{"does not list this status"}},
		"missing common header":            {without("RateLimit-Reset"), []string{"RateLimit-Reset is missing"}},
		"missing Location":                 {without("Location"), []string{"Location is missing"}},
		"several at once":                  {with(with(without("Location"), "RateLimit-Limit", "0"), "X-Request-Id", "x"), []string{"Location is missing", "RateLimit-Limit is", "X-Request-Id is"}},
		"header is no integer":             {with(created(), "RateLimit-Remaining", "many"), []string{"not an integer"}},
		"header given twice":               {twice, []string{"2 times"}},
		"replay header with another value": {with(created(), "Idempotency-Replayed", "false"), []string{"Idempotency-Replayed"}},
		"unknown status of invoice":        {body(`"accepted"`, `"done"`), []string{"/data/status"}},
		"null where none is allowed":       {body(`"2026-04-10"`, `null`), []string{"/data/issue_date"}},
		"missing member":                   {body(`"currency":"DOP",`, ``), []string{"currency"}},
		"two problems in one body":         {body(`"31","status":"accepted"`, `"33","status":"done"`), []string{"/data/status", "/data/ecf_type"}},
		"a number for a decimal":           {body(`"tax_total":"1.80"`, `"tax_total":1.80`), []string{"/data/totals/tax_total"}},
		"not JSON":                         {body(`{`, ``), []string{"not JSON"}},
		"other media type":                 {with(created(), "Content-Type", "text/plain"), []string{"not documented"}},
		"other request id":                 {with(created(), "X-Request-Id", "req_"+strings.Repeat("0", 32)), []string{"but the body says"}},
		"code of another status":           {with(answered("GET", invoices, 401, problem("forbidden")), "WWW-Authenticate", `Bearer realm="fh"`), []string{"/error/code"}},
		"validation without details":       {func() exchange { x := created(); x.status, x.body = 422, details; return x }(), []string{"details"}},
		"unknown detail code": {func() exchange {
			x := created()
			x.status = 422
			x.body = strings.Replace(details, `"}}`, `","details":[{"field":"x","code":"odd","message":"x"}]}}`, 1)
			return x
		}(), []string{"/error/details/0/code"}},
		"body after HEAD":           {answered("HEAD", invoices, 200, page), []string{"a body where none is allowed"}},
		"success outside":           {answered("GET", "/v1/other", 200, `{}`), []string{"not refused"}},
		"405 without Allow":         {answered("PUT", invoices, 405, problem("bad_request")), []string{"Allow is missing"}},
		"plain text outside":        {with(answered("GET", "/x", 404, "404 page not found"), "Content-Type", "text/plain"), []string{"not documented"}},
		"forbidden member accepted": {sent(`{"external_id"`, `{"extra":1,"external_id"`), []string{"breaks the document"}},
		"59 accepted as unit code":  {sent(`"item_kind"`, `"unit_code":59,"item_kind"`), []string{"/lines/0/unit_code"}},
		"accepted without a key":    {keyless, []string{"Idempotency-Key is missing"}},
		"limit 101 accepted":        {answered("GET", invoices+"?limit=101", 200, page), []string{"limit"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(c.exchange.problems(v), "\n")
			if len(c.want) == 0 && got != "" {
				t.Errorf("unexpected: %s", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want a problem with %q", got, want)
				}
			}
		})
	}
}

func TestCheckAcceptsNullWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	v := New(t)
	x := created()
	x.body = strings.Replace(x.body, `"01960b54-9a3d-7f68-b1d9-7e24c05a8f13"`, `null`, 1)
	x.reqBody = strings.Replace(x.reqBody, `"currency"`, `"due_date":null,"currency"`, 1)
	for _, p := range x.problems(v) {
		t.Error(p)
	}
}

// recorder counts the errors that Check reports.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors int
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors++
}

func TestCheckReportsFromManyGoroutines(t *testing.T) {
	t.Parallel()
	v, r := New(t), &recorder{TB: t}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			req := httptest.NewRequestWithContext(t.Context(), "GET", invoices, nil)
			v.Check(r, req, nil, &http.Response{StatusCode: 404}, nil)
		})
	}
	wg.Wait()
	if r.errors != 32 {
		t.Errorf("reported %d problems, want 32", r.errors)
	}
}

func BenchmarkCheck(b *testing.B) {
	v, x := New(b), created()
	for b.Loop() {
		if p := x.problems(v); len(p) > 0 {
			b.Fatal(p)
		}
	}
}
