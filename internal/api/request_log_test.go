package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// requests is a log of requests in memory.
type requests chan store.LoggedRequest

func (r requests) Add(q store.LoggedRequest) { r <- q }

// The log of requests has what a developer needs, and nothing that a client sent in a
// body, a query string, a header, an unknown path or in place of an id.
func TestRequestsAreLoggedWithoutContents(t *testing.T) {
	log := make(requests, 10)
	oneEngine(t, envOptions{requests: log}, func(t *testing.T, e *env) {
		const secret = "s3cr3t-of-the-client"
		var all []store.LoggedRequest
		get := func(path, key string) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.base+path, nil)
			must(t, err)
			request.Header.Set("Authorization", "Bearer "+key)
			request.Header.Set("X-Secret", secret)
			answer, err := e.client.Do(request)
			must(t, err)
			_ = answer.Body.Close()
			if strings.HasPrefix(path, "/v1/") {
				all = append(all, <-log) // the API logs a request after its answer
			}
		}
		list := "/v1/taxpayers/" + e.taxpayer + "/invoices"
		get(list, e.key)
		get(list+"?limit="+secret, e.key)
		get("/v1/unknown/"+secret, e.key)
		get(list, "wrong"+secret)
		get("/healthz", e.key)
		get(list, e.key)
		get("/v1/taxpayers/"+secret+"/invoices", e.key) // a client confuses the taxpayer with its key
		get("/v1/events/inbound/"+secret, e.key)        // another method
		if len(all) != 7 || all[4].Path != list || len(log) != 0 {
			t.Fatalf("%d requests are logged: %+v", len(all), all)
		}
		for i, want := range []struct {
			status           int
			code, path, from string
		}{{200, "", list, e.taxpayer}, {400, "bad_request", list, e.taxpayer}, {404, "not_found", "", ""}, {401, "unauthorized", list, ""},
			{200, "", list, e.taxpayer}, {400, "bad_request", "", e.taxpayer}, {405, "bad_request", "", ""}} {
			q := all[i]
			if q.Status != want.status || q.Code != want.code || q.Path != want.path || q.TaxpayerID != want.from {
				t.Errorf("request %d: %+v, want %+v", i, q, want)
			}
			if q.RequestID == "" || q.Method != "GET" || q.At.IsZero() || (q.Credential != "") != (want.from != "") {
				t.Errorf("request %d lacks something: %+v", i, q)
			}
			if !strings.Contains(e.key, q.Credential) || len(q.Credential) > 12 { // the prefix alone
				t.Errorf("the credential of request %d is %q", i, q.Credential)
			}
			for _, text := range []string{q.Path, q.Route, q.Code, q.Credential} {
				if strings.Contains(text, secret) {
					t.Errorf("request %d has the secret: %+v", i, q)
				}
			}
		}
		if d := all[1].Details; len(d) != 1 || d[0].Field != "limit" || d[0].Code == "" {
			t.Errorf("details %+v", d)
		}
	})
}

// Without an export of traces the log has the id of the client's trace, and the invoice
// keeps the trace for its stages. A malformed or repeated header is ignored.
func TestTheTraceOfAClientIsLogged(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	const header = "00-" + trace + "-00f067aa0ba902b7-01"
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		for name, tt := range map[string]struct {
			lines          []string
			logged, stored string
		}{
			"well-formed": {[]string{header}, trace, header},
			"none":        {nil, "", ""},
			"malformed":   {[]string{strings.ToUpper(header)}, "", ""},
			"two":         {[]string{header, header}, "", ""},
		} {
			got := e.send(request{method: http.MethodPost, path: "invoices", idem: name, header: http.Header{"Traceparent": tt.lines}, body: invoiceBody(name), undescribed: len(tt.lines) > 1})
			made := e.created(got)
			inv, err := e.store.Invoice(t.Context(), e.scope(), made.ID)
			if err != nil || inv.Trace != tt.stored {
				t.Errorf("%s: the invoice keeps %q, %v; want %q", name, inv.Trace, err, tt.stored)
			}
			eventually(t, "the request is logged", func() bool { return strings.Contains(log.String(), made.ID) })
			var line struct {
				TraceID string `json:"trace_id"`
			}
			for text := range strings.Lines(log.String()) {
				if strings.Contains(text, made.ID) {
					e.must(json.Unmarshal([]byte(text), &line))
				}
			}
			if line.TraceID != tt.logged {
				t.Errorf("%s: logged the trace %q, want %q", name, line.TraceID, tt.logged)
			}
		}
	})
}
