package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

func TestW08AnEndpointFromCreationToDeletion(t *testing.T) {
	opt := liveOptions()
	each(t, opt, func(t *testing.T, w *world) {
		a := w.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k",
			body: []byte(`{"url":"https://erp.example.com/hook?a=b","events":["fiscal_document.accepted","webhook.test"],"description":"ERP ñ"}`)})
		var made endpoint
		a.data(t, &made)
		if want := "/v1/taxpayers/" + w.taxpayer + "/webhook-endpoints/" + made.ID; a.status != http.StatusCreated || a.header.Get("Location") != want {
			t.Fatalf("%s, Location %q", a, a.header.Get("Location"))
		}
		if _, err := webhook.ParseSecret(made.Secret); err != nil || *made.Description != "ERP ñ" || made.Status != "enabled" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", a, err)
		}
		path := "webhook-endpoints/" + made.ID
		want := made
		want.Secret = ""
		read := func() (e endpoint) {
			t.Helper()
			a := w.send(request{path: path})
			a.data(t, &e)
			if bytes.Contains(a.body, []byte("whsec_")) {
				t.Errorf("a reading shows the secret: %s", a)
			}
			return e
		}
		if diff := cmp.Diff(want, read()); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		w.clock.advance(time.Minute)
		rotated := w.post(path+"/rotate-secret", "")
		var e endpoint
		rotated.data(t, &e)
		if _, err := webhook.ParseSecret(e.Secret); err != nil || rotated.status != http.StatusOK || e.Secret == made.Secret || e.UpdatedAt == made.UpdatedAt {
			t.Errorf("rotated: %s", rotated)
		}
		ctx := t.Context()
		w.must(w.store.Update(ctx, func(tx *store.Tx) error {
			return tx.DisableEndpoint(ctx, w.scope(), made.ID, store.DisabledGone, w.clock.now())
		}))
		if e := read(); e.Status != "disabled" {
			t.Errorf("disabled: %+v", e)
		}
		if a := w.post(path+"/enable", "{}"); a.status != http.StatusOK || bytes.Contains(a.body, []byte("secret")) || read().Status != "enabled" {
			t.Errorf("enabled: %s", a)
		}
		for i, want := range []int{http.StatusNoContent, http.StatusNotFound} {
			a := w.send(request{method: http.MethodDelete, path: path})
			if a.status != want || (i == 0 && len(a.body) > 0) {
				t.Errorf("deletion %d: %s", i+1, a)
			}
		}
		for _, r := range []request{
			{path: path}, {path: path + "/deliveries"}, {method: http.MethodPost, path: path + "/rotate-secret"}, {method: http.MethodPost, path: path + "/enable"},
			{method: http.MethodPost, path: path + "/test"}, {method: http.MethodPost, path: path + "/replay", body: []byte(`{"failed":true}`)},
		} {
			if a := w.send(r); a.status != http.StatusNotFound || a.code() != "not_found" {
				t.Errorf("%s %s after the deletion: %s", r.method, r.path, a)
			}
		}
		if a := w.send(request{path: "webhook-endpoints"}); !strings.HasPrefix(string(a.body), `{"data":[],`) {
			t.Errorf("the list after the deletion: %s", a)
		}
	})
}

func TestW08EndpointsAreListedAPageAtATime(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		var want []string
		for i := range 5 {
			want = append([]string{w.hook(fmt.Sprint("k", i)).ID}, want...)
		}
		var got []string
		for query := "?limit=2"; query != ""; {
			var page struct {
				Data []endpoint `json:"data"`
				Meta struct {
					NextCursor *string `json:"next_cursor"`
				} `json:"meta"`
			}
			a := w.send(request{path: "webhook-endpoints" + query})
			decode(t, a.body, &page)
			for _, e := range page.Data {
				got = append(got, e.ID)
			}
			if query = ""; page.Meta.NextCursor != nil {
				query = "?limit=2&cursor=" + *page.Meta.NextCursor
				for _, other := range []string{"invoices", "events", "webhook-endpoints/" + want[0] + "/deliveries"} {
					if a := w.send(request{path: other + "?cursor=" + *page.Meta.NextCursor}); a.status != http.StatusBadRequest {
						t.Errorf("the cursor in another list, %s: %s", other, a)
					}
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		for _, query := range []string{"?limit=0", "?limit=101", "?cursor=x", "?status=enabled", "?limit=1&limit=1"} {
			if a := w.send(request{path: "webhook-endpoints" + query}); a.status != http.StatusBadRequest || len(a.details(t)) != 1 {
				t.Errorf("%s: %s", query, a)
			}
		}
	})
}

func TestW08CreationIsIdempotent(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		create := func(idem, body string) answer {
			return w.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: idem, body: []byte(body)})
		}
		const body = `{"url":"https://erp.example.com/é","events":["*"]}`
		if a := create("k", `{"url":"http://localhost/","events":["*"]}`); a.status != http.StatusUnprocessableEntity {
			t.Errorf("refused: %s", a)
		}
		first := create("k", body) // a refusal has not used the key
		if first.status != http.StatusCreated || first.header.Get("Idempotency-Replayed") != "" {
			t.Fatalf("%s", first)
		}
		again := func(what string, a answer) {
			t.Helper()
			if a.status != http.StatusCreated || !bytes.Equal(a.body, first.body) || a.header.Get("Idempotency-Replayed") != "true" ||
				a.header.Get("Location") != first.header.Get("Location") || a.header.Get("X-Request-Id") == first.header.Get("X-Request-Id") {
				t.Errorf("%s: %s %v", what, a, a.header)
			}
		}
		again("the same bytes", create("k", body))
		again("the same JSON", create("k", "{ \"events\" : [\"*\"], \"url\":\"https://erp.example.com/\\u00e9\" }"))
		for name, other := range map[string]string{
			"another URL":                      `{"url":"https://erp.example.com/e","events":["*"]}`,
			"a body that breaks the schema":    `{"url":7}`,
			"a body that breaks a rule":        `{"url":"http://localhost/","events":["*"]}`,
			"a member more":                    `{"url":"https://erp.example.com/é","events":["*"],"description":"d"}`,
			"a body that is no object, though": `[]`,
		} {
			if a := create("k", other); a.status != http.StatusConflict || a.code() != "idempotency_mismatch" {
				t.Errorf("%s: %s", name, a)
			}
		}
		if a := w.create("k", []byte(`{}`)); a.status != http.StatusUnprocessableEntity {
			t.Errorf("the key is used up for invoices: %s", a)
		}
		for i := 2; i <= store.MaxEndpoints; i++ {
			w.hook(fmt.Sprint("k", i))
		}
		a := create("k11", `{"url":"https://erp.example.com/11","events":["*"]}`)
		if a.status != http.StatusUnprocessableEntity || a.code() != "validation_error" || a.details(t)[0].Code != fiscal.CodeTooManyItems {
			t.Errorf("the eleventh: %s", a)
		}
		again("when there is no room for another", create("k", body))
		var made endpoint
		first.data(t, &made)
		w.must(w.endpoints().Delete(t.Context(), w.scope(), made.ID))
		again("after its deletion", create("k", body))
		if a := create("k11", `{"url":"https://erp.example.com/11","events":["*"]}`); a.status != http.StatusCreated {
			t.Errorf("the eleventh, once there is room: %s", a)
		}
		stored, err := w.store.Answer(t.Context(), w.scope(), "create_webhook_endpoint", "k")
		w.must(err)
		if len(stored.Body) > 0 {
			t.Errorf("the answer is stored in the clear: %s", stored.Body)
		}
	})
}

func TestW08EveryProblemOfAnEndpointIsTold(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		const url = `"url":"https://erp.example.com/"`
		tests := []struct{ name, body, want string }{
			{"nothing", `{}`, "events required, url required"},
			{"no object", `[]`, " invalid_type"},
			{"null", `{"url":null,"events":null,"description":null}`, "description invalid_type, events invalid_type, url invalid_type"},
			{"empty", `{"url":"","events":[],"description":""}`, "description too_short, url too_short"},
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
			a := w.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k", body: []byte(tt.body)})
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
		a := w.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: "k", body: []byte(`{` + many.String() + url + `}`)})
		if details := a.details(t); len(details) != 101 || details[100].Code != fiscal.CodeTooManyErrors {
			t.Errorf("%d details of 501", len(details))
		}
	})
}

func TestW08CommandsTakeNoBody(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		path := "webhook-endpoints/" + w.hook("k").ID
		for _, command := range []string{"/rotate-secret", "/enable", "/test"} {
			for body, want := range map[string]string{
				"": "200 ", "{}": "200 ", " { } ": "200 ", `{"a":1}`: "422 validation_error", "[]": "422 validation_error", "null": "422 validation_error",
				"{": "400 invalid_json", `{"a":1,"a":1}`: "400 invalid_json", " ": "400 invalid_json",
			} {
				if a := w.post(path+command, body); fmt.Sprint(a.status, " ", a.code()) != want {
					t.Errorf("%s with %q: want %s, got %s", command, body, want, a)
				}
			}
			for body, want := range map[string]int{"": http.StatusOK, "{}": http.StatusUnsupportedMediaType} {
				a := w.send(request{method: http.MethodPost, path: path + command, body: []byte(body), header: http.Header{"Content-Type": {"text/plain"}}})
				if a.status != want {
					t.Errorf("%s with %q as text: %s", command, body, a)
				}
			}
		}
	})
}

func TestW08ATestIsPostedOnceAndLogged(t *testing.T) {
	opt := liveOptions()
	opt.clock = newClock()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := opt
		post := &poster{}
		opt.poster = post
		w := start(t, address, opt)
		made := w.hook("k", "fiscal_document.accepted")
		path := "webhook-endpoints/" + made.ID
		for _, tt := range []struct {
			result webhook.Result
			want   string
		}{
			{webhook.Result{Status: http.StatusNoContent}, `{"delivered":true,"http_status":204,"error":null}`},
			{webhook.Result{Status: http.StatusGone, Error: "status_410", Gone: true}, `{"delivered":false,"http_status":410,"error":"status_410"}`},
			{webhook.Result{Error: "dns"}, `{"delivered":false,"http_status":null,"error":"dns"}`},
		} {
			post.say(tt.result)
			if a := w.post(path+"/test", ""); a.status != http.StatusOK || !strings.HasPrefix(string(a.body), `{"data":`+tt.want+`,`) {
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
		decode(t, w.send(request{path: path + "/deliveries?limit=2"}).body, &log)
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
		decode(t, w.send(request{path: path + "/deliveries?limit=2&cursor=" + next}).body, &log)
		if len(log.Data) != 1 || log.Data[0]["event_id"] != post.posted[0].ID || log.Meta.NextCursor != nil {
			t.Errorf("its last page: %+v", log)
		}
		other := w.hook("other")
		if a := w.send(request{path: "webhook-endpoints/" + other.ID + "/deliveries?cursor=" + next}); a.status != http.StatusBadRequest {
			t.Errorf("the cursor of another's log: %s", a)
		}
		if e, err := w.store.Endpoint(t.Context(), w.scope(), made.ID); err != nil || e.Status != store.EndpointEnabled || e.Failures != 0 {
			t.Errorf("a test counted: %+v, %v", e, err)
		}
	})
}

// An endpoint that hangs takes its time from nobody.
func TestW08ATestThatHangsHoldsNoPlace(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt, entered := liveOptions(), make(chan struct{}, 100)
		opt.poster = &poster{answer: func(ctx context.Context, _ webhook.Message) webhook.Result {
			entered <- struct{}{}
			<-ctx.Done()
			return webhook.Result{Error: webhook.ClassStopped}
		}}
		w := start(t, address, opt)
		path := "webhook-endpoints/" + w.hook("k").ID + "/test"
		var under []<-chan answer
		for range 70 { // more than a credential has places
			under = append(under, w.sendLater(request{method: http.MethodPost, path: path}))
		}
		for range under {
			soon(t, "a test", entered)
		}
		if a := w.send(request{path: "invoices"}); a.status != http.StatusOK {
			t.Errorf("another request: %s", a)
		}
		w.api.Drain()
		for _, c := range under {
			if a := soon(t, "the end of a test", c); a.status != http.StatusServiceUnavailable {
				t.Errorf("a test under way at the end: %s", a)
			}
		}
	})
}

func TestW08Replay(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		path := "webhook-endpoints/" + w.hook("k", "taxpayer.contingency_started").ID + "/replay"
		first := w.tell("taxpayer.contingency_ended") // not asked for
		w.clock.advance(time.Hour)
		w.tell("taxpayer.contingency_started")
		w.tell("taxpayer.contingency_started")
		since := w.clock.now()
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
			if a := w.post(path, body); !strings.HasPrefix(a.String(), want) {
				t.Errorf("%s: want %s, got %s", body, want, a)
			}
		}
	})
}

// A request for an endpoint has the checks of one for an invoice, in their order.
func TestW08ChecksComeInOrder(t *testing.T) {
	each(t, liveOptions(), func(t *testing.T, w *world) {
		for i := range store.MaxEndpoints {
			w.hook(fmt.Sprint("k", i))
		}
		scopeless := w.newKey(w.taxpayer, w.opt.env, apikey.InvoicesRead)
		// From the last check to the first; each request has the defects of all before it as well.
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
			if a := w.send(r); a.status != step.status || a.code() != step.code {
				t.Errorf("%s: want %d %s, got %s", step.name, step.status, step.code, a)
			}
		}
	})
}

func TestW08TheSandboxRefusesEverything(t *testing.T) {
	each(t, options{poster: &poster{}}, func(t *testing.T, w *world) {
		swept := 0
		for _, o := range operations(t) {
			if !o.emits() {
				continue
			}
			for _, id := range []string{store.NewID(), "x"} {
				swept++
				if a := w.send(o.complete(o.at(w.taxpayer, id))); a.status != http.StatusForbidden || a.code() != "forbidden" || a.header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s: %s", o, a)
				}
			}
			if a := w.send(o.complete(o.at(store.NewID(), store.NewID()))); o.named() && a.status != http.StatusNotFound {
				t.Errorf("%s of another taxpayer: %s", o, a)
			}
		}
		if swept != 18 {
			t.Errorf("%d requests", swept)
		}
		f := w.events("")
		if len(f.Data) != 0 || f.Meta.HasMore || f.Meta.NextCursor == "" {
			t.Errorf("the feed: %+v", f)
		}
		if again := w.events("?cursor=" + f.Meta.NextCursor); again.Meta.NextCursor != f.Meta.NextCursor {
			t.Errorf("the feed from its end: %+v", again)
		}
		secret := webhook.NewSecret()
		r := signed(store.NewID(), "m", w.clock.now(), inboundBody("E310000000001", "x"), secret)
		if a := w.send(r); a.status != http.StatusNotFound {
			t.Errorf("the relay: %s", a)
		}
	})
}

// signed is a message of a source.
func signed(source, id string, at time.Time, body []byte, secrets ...webhook.Secret) request {
	return request{
		method: http.MethodPost, path: "/v1/events/inbound/" + source, key: "-", body: body,
		header: http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {webhook.Sign(id, at, body, secrets...)},
		},
	}
}
