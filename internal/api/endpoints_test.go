package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

func TestEndpointFromCreationToDeletion(t *testing.T) {
	opt := liveOptions()
	eachEngine(t, opt, func(t *testing.T, e *env) {
		a := e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k",
			body: []byte(`{"url":"https://erp.example.com/hook?a=b","events":["fiscal_document.accepted","webhook.test"],"description":"ERP ñ"}`)})
		var made endpoint
		a.data(t, &made)
		if want := "/v1/taxpayers/" + e.taxpayer + "/webhook-endpoints/" + made.ID; a.status != http.StatusCreated || a.header.Get("Location") != want {
			t.Fatalf("%s, Location %q", a, a.header.Get("Location"))
		}
		if _, err := webhook.ParseSecret(made.Secret); err != nil || *made.Description != "ERP ñ" || made.Status != "enabled" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", a, err)
		}
		path := "webhook-endpoints/" + made.ID
		want := made
		want.Secret = ""
		read := func() (found endpoint) {
			t.Helper()
			a := e.send(request{path: path})
			a.data(t, &found)
			if bytes.Contains(a.body, []byte("whsec_")) {
				t.Errorf("a read shows the secret: %s", a)
			}
			return found
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		e.clock.advance(time.Minute)
		a = e.post(path+"/rotate-secret", "")
		var rotated endpoint
		a.data(t, &rotated)
		if _, err := webhook.ParseSecret(rotated.Secret); err != nil || a.status != http.StatusOK || rotated.Secret == made.Secret || rotated.UpdatedAt == made.UpdatedAt {
			t.Errorf("rotated: %s", a)
		}
		ctx := t.Context()
		e.must(e.store.Update(ctx, func(tx *store.Tx) error {
			return tx.DisableEndpoint(ctx, e.scope(), made.ID, store.DisabledGone, e.clock.now())
		}))
		if found := read(); found.Status != "disabled" {
			t.Errorf("disabled: %+v", found)
		}
		if a := e.post(path+"/enable", "{}"); a.status != http.StatusOK || bytes.Contains(a.body, []byte("secret")) || read().Status != "enabled" {
			t.Errorf("enabled: %s", a)
		}
		for i, want := range []int{http.StatusNoContent, http.StatusNotFound} {
			a := e.send(request{method: http.MethodDelete, path: path})
			if a.status != want || (i == 0 && len(a.body) > 0) {
				t.Errorf("deletion %d: %s", i+1, a)
			}
		}
		for _, r := range []request{
			{path: path}, {path: path + "/deliveries"}, {method: http.MethodPost, path: path + "/rotate-secret"}, {method: http.MethodPost, path: path + "/enable"},
			{method: http.MethodPost, path: path + "/test"}, {method: http.MethodPost, path: path + "/replay", body: []byte(`{"failed":true}`)},
		} {
			if a := e.send(r); a.status != http.StatusNotFound || a.code() != "not_found" {
				t.Errorf("%s %s after the deletion: %s", r.method, r.path, a)
			}
		}
		if a := e.send(request{path: "webhook-endpoints"}); !strings.HasPrefix(string(a.body), `{"data":[],`) {
			t.Errorf("the list after the deletion: %s", a)
		}
	})
}

func TestEndpointsAreListedInPages(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		var want []string
		for i := range 5 {
			want = append([]string{e.createEndpoint(fmt.Sprint("k", i)).ID}, want...)
		}
		var got []string
		for query := "?limit=2"; query != ""; {
			var page struct {
				Data []endpoint `json:"data"`
				Meta struct {
					NextCursor *string `json:"next_cursor"`
				} `json:"meta"`
			}
			a := e.send(request{path: "webhook-endpoints" + query})
			decode(t, a.body, &page)
			for _, listed := range page.Data {
				got = append(got, listed.ID)
			}
			if query = ""; page.Meta.NextCursor != nil {
				query = "?limit=2&cursor=" + *page.Meta.NextCursor
				for _, other := range []string{"invoices", "events", "webhook-endpoints/" + want[0] + "/deliveries"} {
					if a := e.send(request{path: other + "?cursor=" + *page.Meta.NextCursor}); a.status != http.StatusBadRequest {
						t.Errorf("the cursor in another list, %s: %s", other, a)
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		for _, query := range []string{"?limit=0", "?limit=101", "?cursor=x", "?status=enabled", "?limit=1&limit=1"} {
			if a := e.send(request{path: "webhook-endpoints" + query}); a.status != http.StatusBadRequest || len(a.details(t)) != 1 {
				t.Errorf("%s: %s", query, a)
			}
		}
	})
}

// After a rotation, a repeated creation gets the stored answer without the secret: the old
// one ends, and perhaps it has leaked.
func TestARepeatedCreationDoesNotShowAnOldSecret(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		create := func() response {
			return e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k", body: endpointBody("https://erp.example.com/", "*")})
		}
		var made, rotated endpoint
		first := create()
		first.data(t, &made)
		want := strings.Replace(string(first.body), `,"secret":"`+made.Secret+`"`, "", 1)
		if len(want) == len(first.body) {
			t.Fatalf("no secret in %s", first)
		}
		if again := create(); !bytes.Equal(again.body, first.body) {
			t.Errorf("before the rotation: %s", again)
		}
		e.post("webhook-endpoints/"+made.ID+"/rotate-secret", "").data(t, &rotated)
		replayed := func(when string) {
			t.Helper()
			a := create()
			if a.status != http.StatusCreated || string(a.body) != want || a.header.Get("Idempotency-Replayed") != "true" ||
				a.header.Get("Location") != first.header.Get("Location") {
				t.Errorf("%s: %s\nwant %s", when, a, want)
			}
			if strings.Contains(string(a.body), made.Secret) || strings.Contains(string(a.body), rotated.Secret) {
				t.Errorf("%s: the answer has a secret: %s", when, a)
			}
		}
		replayed("after the rotation")
		e.send(request{method: http.MethodDelete, path: "webhook-endpoints/" + made.ID})
		replayed("after the rotation and a deletion")
	})
}

func TestEndpointCreationIsIdempotent(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		create := func(idem, body string) response {
			return e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: idem, body: []byte(body)})
		}
		const body = `{"url":"https://erp.example.com/é","events":["*"]}`
		wantStatus(t, "refused", create("k", `{"url":"http://localhost/","events":["*"]}`), http.StatusUnprocessableEntity)
		first := create("k", body) // a refusal does not use up the key
		if first.status != http.StatusCreated || first.header.Get("Idempotency-Replayed") != "" {
			t.Fatalf("%s", first)
		}
		again := func(what string, a response) {
			t.Helper()
			if a.status != http.StatusCreated || !bytes.Equal(a.body, first.body) || a.header.Get("Idempotency-Replayed") != "true" ||
				a.header.Get("Location") != first.header.Get("Location") || a.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
				t.Errorf("%s: %s %v", what, a, a.header)
			}
		}
		again("the same bytes", create("k", body))
		again("the same JSON", create("k", "{ \"events\" : [\"*\"], \"url\":\"https://erp.example.com/\\u00e9\" }"))
		for name, other := range map[string]string{
			"another URL":                   `{"url":"https://erp.example.com/e","events":["*"]}`,
			"a body that breaks the schema": `{"url":7}`,
			"a body that breaks a rule":     `{"url":"http://localhost/","events":["*"]}`,
			"a member more":                 `{"url":"https://erp.example.com/é","events":["*"],"description":"d"}`,
			"a body that is no object":      `[]`,
		} {
			wantCode(t, name, create("k", other), http.StatusConflict, "idempotency_mismatch")
		}
		wantStatus(t, "the key is used up for invoices", e.create("k", []byte(`{}`)), http.StatusUnprocessableEntity)
		for i := 2; i <= store.MaxEndpoints; i++ {
			e.createEndpoint(fmt.Sprint("k", i))
		}
		a := create("k11", `{"url":"https://erp.example.com/11","events":["*"]}`)
		if a.status != http.StatusUnprocessableEntity || a.code() != "validation_error" || a.details(t)[0].Code != fiscal.CodeTooManyItems {
			t.Errorf("endpoint 11: %s", a)
		}
		again("when the limit is reached", create("k", body))
		var made endpoint
		first.data(t, &made)
		e.must(e.Endpoints.Delete(t.Context(), e.scope(), made.ID))
		again("after its deletion", create("k", body))
		wantStatus(t, "endpoint 11 after a deletion", create("k11", `{"url":"https://erp.example.com/11","events":["*"]}`), http.StatusCreated)
		stored, err := e.store.StoredReply(t.Context(), e.scope(), "create_webhook_endpoint", "k")
		e.must(err)
		if len(stored.Body) > 0 {
			t.Errorf("the answer is stored without encryption: %s", stored.Body)
		}
	})
}

func TestEndpointValidationListsEveryProblem(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		const url = `"url":"https://erp.example.com/"`
		tests := []struct{ name, body, want string }{
			{"nothing", `{}`, "events required, url required"},
			{"no object", `[]`, " invalid_type"},
			{"null", `{"url":null,"events":null,"description":null}`, "description invalid_type, events invalid_type, url invalid_type"},
			{"empty", `{"url":"","events":[],"description":""}`, "description too_short, events too_few_items, url too_short"},
			{"wrong form and wrong contents", `{"url":"http://erp.example.com/","events":["invoice.created"],"description":7,"x":1}`, "description invalid_type, events.0 invalid_enum, url invalid_format, x unknown_field"},
			{"no events", `{` + url + `,"events":[]}`, "events too_few_items"},
			{"unknown events", `{` + url + `,"events":["*","invoice.created","*",7,""]}`, "events.3 invalid_type, events.4 too_short"},
			{"unknown and doubled events", `{` + url + `,"events":["*","invoice.created","*"]}`, "events.1 invalid_enum, events.2 duplicated"},
			{"unknown members", `{` + url + `,"events":["*"],"URL":"","a.b":1}`, "URL unknown_field, a.b unknown_field"},
			{"blank", `{` + url + `,"events":["*"],"description":" \t"}`, "description blank"},
			{"control characters", `{` + url + `,"events":["*"],"description":"a\u0000"}`, "description invalid_characters"},
			{"long", `{` + url + `,"events":["*"],"description":"` + strings.Repeat("é", 201) + `"}`, "description too_long"},
			{"http", `{"url":"http://erp.example.com/","events":["*"]}`, "url invalid_format"},
			{"an address", `{"url":"https://127.0.0.1/","events":["*"]}`, "url invalid_format"},
			{"another port", `{"url":"https://erp.example.com:8443/","events":["*"]}`, "url invalid_format"},
			{"a long URL", `{"url":"https://erp.example.com/` + strings.Repeat("a", 2048) + `","events":["*"]}`, "url too_long"},
		}
		for _, tt := range tests {
			a := e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k", body: []byte(tt.body)})
			var got []string
			for _, p := range a.details(t) {
				got = append(got, p.Field+" "+p.Code)
			}
			if a.status != http.StatusUnprocessableEntity || strings.Join(got, ", ") != tt.want {
				t.Errorf("%s: want %s, got %s", tt.name, tt.want, a)
			}
		}
		var many strings.Builder
		for i := range 500 {
			fmt.Fprintf(&many, `"m%d":1,`, i)
		}
		a := e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k", body: []byte(`{` + many.String() + url + `}`)})
		if details := a.details(t); len(details) != 101 || details[100].Code != fiscal.CodeTooManyErrors {
			t.Errorf("%d details of 501", len(details))
		}
	})
}

func TestEndpointCommandsTakeNoBody(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		path := "webhook-endpoints/" + e.createEndpoint("k").ID
		for _, command := range []string{"/rotate-secret", "/enable", "/test"} {
			for body, want := range map[string]string{
				"": "200 ", "{}": "200 ", " { } ": "200 ", `{"a":1}`: "422 validation_error", "[]": "422 validation_error", "null": "422 validation_error",
				"{": "400 invalid_json", `{"a":1,"a":1}`: "400 invalid_json", " ": "400 invalid_json",
			} {
				if a := e.post(path+command, body); fmt.Sprint(a.status, " ", a.code()) != want {
					t.Errorf("%s with %q: want %s, got %s", command, body, want, a)
				}
			}
			for body, want := range map[string]int{"": http.StatusOK, "{}": http.StatusUnsupportedMediaType} {
				a := e.send(request{method: http.MethodPost, path: path + command, body: []byte(body), header: http.Header{"Content-Type": {"text/plain"}}})
				if a.status != want {
					t.Errorf("%s with %q as text: %s", command, body, a)
				}
			}
		}
	})
}

func TestEndpointTestIsPostedOnceAndLogged(t *testing.T) {
	opt := liveOptions()
	opt.clock = newClock()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := opt
		post := &stubPoster{}
		opt.poster = post
		e := newEnv(t, address, opt)
		made := e.createEndpoint("k", "fiscal_document.accepted")
		path := "webhook-endpoints/" + made.ID
		for _, tt := range []struct {
			result webhook.Result
			want   string
		}{
			{webhook.Result{Status: http.StatusNoContent}, `{"delivered":true,"http_status":204,"error":null}`},
			{webhook.Result{Status: http.StatusGone, Error: "status_410", Gone: true}, `{"delivered":false,"http_status":410,"error":"status_410"}`},
			{webhook.Result{Error: "dns"}, `{"delivered":false,"http_status":null,"error":"dns"}`},
		} {
			post.setResult(tt.result)
			if a := e.post(path+"/test", ""); a.status != http.StatusOK || !strings.HasPrefix(string(a.body), `{"data":`+tt.want+`,`) {
				t.Errorf("want %s, got %s", tt.want, a)
			}
		}
		if len(post.posted) != 3 || post.posted[0].Secrets[0].Reveal() != made.Secret || !strings.Contains(string(post.posted[0].Body), `"type":"webhook.test"`) {
			t.Fatalf("posted %+v", post.posted)
		}
		var log struct {
			Data []map[string]any `json:"data"`
			Meta struct {
				NextCursor *string `json:"next_cursor"`
			} `json:"meta"`
		}
		decode(t, e.send(request{path: path + "/deliveries?limit=2"}).body, &log)
		want := []map[string]any{
			{"event_id": post.posted[2].ID, "type": "webhook.test", "attempt": 1.0, "attempted_at": "2026-11-15T12:00:00.000Z",
				"next_attempt_at": nil, "http_status": nil, "error": "dns"},
			{"event_id": post.posted[1].ID, "type": "webhook.test", "attempt": 1.0, "attempted_at": "2026-11-15T12:00:00.000Z",
				"next_attempt_at": nil, "http_status": 410.0, "error": "status_410"},
		}
		if diff := cmp.Diff(want, log.Data); diff != "" || log.Meta.NextCursor == nil {
			t.Fatalf("the log (-want +got):\n%s", diff)
		}
		next := *log.Meta.NextCursor
		decode(t, e.send(request{path: path + "/deliveries?limit=2&cursor=" + next}).body, &log)
		if len(log.Data) != 1 || log.Data[0]["event_id"] != post.posted[0].ID || log.Meta.NextCursor != nil {
			t.Errorf("the last page of the log: %+v", log)
		}
		other := e.createEndpoint("other")
		wantStatus(t, "the cursor of another endpoint's log", e.send(request{path: "webhook-endpoints/" + other.ID + "/deliveries?cursor=" + next}), http.StatusBadRequest)
		if stored, err := e.store.Endpoint(t.Context(), e.scope(), made.ID); err != nil || stored.Status != store.EndpointEnabled || stored.Failures != 0 {
			t.Errorf("a failed test counts as a failed delivery: %+v, %v", stored, err)
		}
	})
}

// A test of an endpoint that does not answer does not delay other requests.
func TestEndpointTestThatHangsHoldsNoSlot(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt, entered := liveOptions(), make(chan struct{}, 100)
		opt.poster = &stubPoster{answer: func(ctx context.Context, _ webhook.Message) webhook.Result {
			entered <- struct{}{}
			<-ctx.Done()
			return webhook.Result{Error: webhook.ClassStopped}
		}}
		e := newEnv(t, address, opt)
		path := "webhook-endpoints/" + e.createEndpoint("k").ID + "/test"
		var under []<-chan response
		for range 70 { // more than a credential has slots
			under = append(under, e.sendAsync(request{method: http.MethodPost, path: path}))
		}
		for range under {
			receive(t, "a test", entered)
		}
		wantStatus(t, "another request", e.send(request{path: "invoices"}), http.StatusOK)
		e.api.Drain()
		for _, c := range under {
			wantStatus(t, "a test that runs during the drain", receive(t, "the end of a test", c), http.StatusServiceUnavailable)
		}
	})
}

// A refusal for too many waiting tests costs nothing of the rate limit.
func TestRefusedEndpointTestIsNotCounted(t *testing.T) {
	opt, entered := liveOptions(), make(chan struct{}, 10)
	opt.poster = &stubPoster{answer: func(ctx context.Context, _ webhook.Message) webhook.Result {
		entered <- struct{}{}
		<-ctx.Done()
		return webhook.Result{Error: webhook.ClassStopped}
	}}
	oneEngine(t, opt, func(t *testing.T, e *env) {
		path := "webhook-endpoints/" + e.createEndpoint("k").ID + "/test"
		narrow := e.withService(t, func(o *api.Options, _ *http.Server) {
			limits := capacity.DefaultLimits(1<<30, 2)
			limits.CredentialWaits = 1
			o.Capacity, o.RateLimit = capacity.New(limits), 5
		})
		waiting := narrow.sendAsync(request{method: http.MethodPost, path: path})
		receive(t, "a test", entered)
		for range 2 {
			a := narrow.send(request{method: http.MethodPost, path: path})
			if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || a.header.Get("RateLimit-Remaining") != "4" {
				t.Errorf("%s %v", a, a.header)
			}
		}
		narrow.api.Drain()
		receive(t, "the end of the test", waiting)
	})
}

func TestReplayOfEvents(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		path := "webhook-endpoints/" + e.createEndpoint("k", "taxpayer.contingency_started").ID + "/replay"
		first := e.addEvent("taxpayer.contingency_ended") // of another kind than the endpoint wants
		e.clock.advance(time.Hour)
		e.addEvent("taxpayer.contingency_started")
		e.addEvent("taxpayer.contingency_started")
		since := e.clock.now()
		for body, want := range map[string]string{
			`{"event_id":"` + first.ID + `"}`:                                                                 `202 {"data":{"events":1},`,
			`{"since":"` + since.Format(time.RFC3339) + `"}`:                                                  `202 {"data":{"events":2},`,
			`{"since":"` + since.Add(time.Second).In(time.FixedZone("", -4*3600)).Format(time.RFC3339) + `"}`: `202 {"data":{"events":0},`,
			`{"since":"0000-01-01T00:00:00Z"}`:                                                                `202 {"data":{"events":2},`,
			`{"since":"0001-01-01T00:00:00Z"}`:                                                                `202 {"data":{"events":2},`,
			`{"since":"0001-01-01T00:00:00+14:00"}`:                                                           `202 {"data":{"events":2},`,
			`{"since":"9999-12-31T23:59:59.999999999-12:00"}`:                                                 `202 {"data":{"events":0},`,
			`{"since":"2016-12-31T23:59:60Z"}`:                                                                `422 {"error":{"code":"validation_error"`,
			`{"since":"10000-01-01T00:00:00Z"}`:                                                               `422 {"error":{"code":"validation_error"`,
			`{"since":"-0001-01-01T00:00:00Z"}`:                                                               `422 {"error":{"code":"validation_error"`,
			`{"failed":true}`:                                                                                 `202 {"data":{"events":0},`,
			`{"event_id":"evt_00000000000000000000000000000000"}`:                                             `404 {"error":{"code":"not_found"`,
			`{"event_id":"evt_1"}`:                                                                            `422 {"error":{"code":"validation_error"`,
			`{"since":"yesterday"}`:                                                                           `422 {"error":{"code":"validation_error"`,
			`{"since":"2026-11-15"}`:                                                                          `422 {"error":{"code":"validation_error"`,
			`{"since":1}`:                                                                                     `422 {"error":{"code":"validation_error"`,
			`{"failed":false}`:                                                                                `422 {"error":{"code":"validation_error"`,
			`{"failed":"true"}`:                                                                               `422 {"error":{"code":"validation_error"`,
			`{"failed":true,"since":"2026-11-15T00:00:00Z"}`:                                                  `422 {"error":{"code":"validation_error"`,
			`{"all":true}`:                                                                                    `422 {"error":{"code":"validation_error"`,
			`{}`:                                                                                              `422 {"error":{"code":"validation_error"`,
			`[]`:                                                                                              `422 {"error":{"code":"validation_error"`,
			``:                                                                                                `400 {"error":{"code":"invalid_json"`,
		} {
			if a := e.post(path, body); !strings.HasPrefix(a.String(), want) {
				t.Errorf("%s: want %s, got %s", body, want, a)
			}
		}
	})
}

// The creation of an endpoint has the same checks as that of an invoice.
func TestEndpointCreationChecksInOrder(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		for i := range store.MaxEndpoints {
			e.createEndpoint(fmt.Sprint("k", i))
		}
		scopeless := e.newKey(e.taxpayer, e.opt.environment, apikey.InvoicesRead)
		// From the last check to the first; each request keeps the defects of the steps before.
		r := request{method: http.MethodPost, path: "webhook-endpoints", idem: "new", header: http.Header{}, body: endpointBody("https://a.example/")}
		for _, step := range []struct {
			name   string
			put    func()
			status int
			code   string
		}{
			{"too many", func() {}, 422, "validation_error"},
			{"an unknown kind", func() { r.body = endpointBody("https://a.example/", "x") }, 422, "validation_error"},
			{"a key used before", func() { r.idem = "k0" }, 409, "idempotency_mismatch"},
			{"no JSON", func() { r.body = append(r.body, '}') }, 400, "invalid_json"},
			{"too long", func() { r.body = make([]byte, 1<<20+1) }, 413, "bad_request"},
			{"media type", func() { r.header.Set("Content-Type", "text/plain") }, 415, "bad_request"},
			{"no key", func() { r.idem = "" }, 400, "bad_request"},
			{"unknown parameter", func() { r.path += "?dry_run=true" }, 400, "bad_request"},
			{"another taxpayer", func() { r.path = "/v1/taxpayers/" + store.NewID() + "/webhook-endpoints?dry_run=true" }, 403, "forbidden"},
			{"malformed taxpayer", func() { r.path = "/v1/taxpayers/me/webhook-endpoints?dry_run=true" }, 400, "bad_request"},
			{"no scope", func() { r.key = scopeless }, 403, "forbidden"},
			{"no credential", func() { r.key = "-" }, 401, "unauthorized"},
			{"another method", func() { r.method = http.MethodPut }, 405, "bad_request"},
			{"another path", func() { r.path = "/v1/taxpayers/me/webhook-endpoints/" }, 404, "not_found"},
		} {
			step.put()
			if a := e.send(r); a.status != step.status || a.code() != step.code {
				t.Errorf("%s: want %d %s, got %s", step.name, step.status, step.code, a)
			}
		}
	})
}

func TestSandboxRefusesWebhookOperations(t *testing.T) {
	eachEngine(t, envOptions{poster: &stubPoster{}}, func(t *testing.T, e *env) {
		requests := 0
		for _, o := range operations(t) {
			if !o.webhooks() {
				continue
			}
			for _, id := range []string{store.NewID(), "x"} {
				requests++
				if a := e.send(o.validRequest(o.pathFor(e.taxpayer, id))); a.status != http.StatusForbidden || a.code() != "forbidden" || a.header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s: %s", o, a)
				}
			}
			if a := e.send(o.validRequest(o.pathFor(store.NewID(), store.NewID()))); o.named() && a.status != http.StatusNotFound {
				t.Errorf("%s of another taxpayer: %s", o, a)
			}
		}
		if requests != 18 {
			t.Errorf("%d requests", requests)
		}
		f := e.events("")
		if len(f.Data) != 0 || f.Meta.HasMore || f.Meta.NextCursor == "" {
			t.Errorf("the feed: %+v", f)
		}
		if again := e.events("?cursor=" + f.Meta.NextCursor); again.Meta.NextCursor != f.Meta.NextCursor {
			t.Errorf("the feed after its end: %+v", again)
		}
		secret := webhook.NewSecret()
		r := signedMessage(store.NewID(), "m", e.clock.now(), inboundBody("E310000000001", "x"), secret)
		wantStatus(t, "inbound message", e.send(r), http.StatusNotFound)
	})
}
