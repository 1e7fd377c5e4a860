package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// liveOptions configure an environment that sends events. Its plan accepts every
// invoice at once.
func liveOptions() envOptions {
	return envOptions{environment: fiscal.Certification, plan: stubPlan{}, poster: &stubPoster{}}
}

// stubPoster records messages instead of posting them.
type stubPoster struct {
	mu     sync.Mutex
	posted []webhook.Message
	answer func(context.Context, webhook.Message) webhook.Result // nil: 204
}

// Post records the message.
func (p *stubPoster) Post(ctx context.Context, m webhook.Message) webhook.Result {
	p.mu.Lock()
	p.posted = append(p.posted, m)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return webhook.Result{Status: http.StatusNoContent}
	}
	return answer(ctx, m)
}

func (p *stubPoster) setResult(r webhook.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(context.Context, webhook.Message) webhook.Result { return r }
}

// addEvent stores an event of the taxpayer.
func (e *env) addEvent(kind string) store.Event {
	e.t.Helper()
	n := e.newEvent(kind)
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(e.t.Context(), n) }))
	e.Feed.Wake(n.Scope)
	return n
}

func (e *env) newEvent(kind string) store.Event {
	n, err := pipeline.NewEvent(e.scope(), kind, e.opt.now(), map[string]any{"object": "taxpayer", "id": e.taxpayer})
	e.must(err)
	return n
}

// addDocumentEvent stores an event about a document, with a link.
func (e *env) addDocumentEvent() store.Event {
	e.t.Helper()
	document := store.NewID()
	n, err := pipeline.NewEvent(e.scope(), "fiscal_document.accepted", e.opt.now(), map[string]any{
		"object": "fiscal_document", "id": document, "invoice_id": store.NewID(), "external_id": `"links":{"self":"/v1/`, "ecf_type": "31",
		"status": "accepted", "previous_status": "processing", "sequence": 4, "encf": "E310000000001", "track_id": "t", "issue_date": "2026-11-14",
		"total": "590.00", "links": map[string]any{"self": "/v1/taxpayers/" + e.taxpayer + "/fiscal-documents/" + document},
	})
	e.must(err)
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(e.t.Context(), n) }))
	e.Feed.Wake(n.Scope)
	return n
}

// endpoint is a webhook endpoint in the form of the contract.
type endpoint struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Events      []string `json:"events"`
	Description *string  `json:"description"`
	Status      string   `json:"status"`
	Secret      string   `json:"secret"`
	CreatedAt   string   `json:"created_at"`
	UpdatedAt   string   `json:"updated_at"`
}

// createEndpoint creates an endpoint for some kinds of events; none: all.
func (e *env) createEndpoint(idem string, kinds ...string) endpoint {
	e.t.Helper()
	a := e.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: idem, body: endpointBody("https://erp.example.com/"+idem, kinds...)})
	if a.status != http.StatusCreated {
		e.t.Fatalf("want 201, got %s", a)
	}
	var created endpoint
	a.data(e.t, &created)
	return created
}

// post sends a command that needs no idempotency key.
func (e *env) post(path, body string) response {
	e.t.Helper()
	return e.send(request{method: http.MethodPost, path: path, body: []byte(body)})
}

// feed is a page of events.
type feed struct {
	Data []struct {
		ID   string          `json:"id"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	} `json:"data"`
	Meta struct {
		NextCursor string `json:"next_cursor"`
		HasMore    bool   `json:"has_more"`
	} `json:"meta"`
}

func (f feed) ids() (ids []string) {
	for _, e := range f.Data {
		ids = append(ids, e.ID)
	}
	return ids
}

// events reads a page of the feed.
func (e *env) events(query string) feed {
	e.t.Helper()
	a := e.send(request{path: "events" + query})
	if a.status != http.StatusOK {
		e.t.Fatalf("events%s: %s", query, a)
	}
	var f feed
	decode(e.t, a.body, &f)
	return f
}

func TestFeedIsInOrder(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		if f := e.events(""); len(f.Data) != 0 || f.Meta.HasMore || f.Meta.NextCursor == "" {
			t.Fatalf("empty feed: %+v", f)
		}
		start := e.events("").Meta.NextCursor
		var want []string
		for i := range 5 {
			e.clock.advance(time.Millisecond)
			want = append(want, e.addEvent("taxpayer.contingency_started").ID)
			if i == 2 {
				e.events("") // reading gives the events so far their positions
			}
		}
		var got []string
		query, pages := "?limit=2&cursor="+start, 0
		for more := true; more; pages++ {
			f := e.events(query)
			got = append(got, f.ids()...)
			query, more = "?limit=2&cursor="+f.Meta.NextCursor, f.Meta.HasMore
		}
		if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
			t.Errorf("%d pages (-want +got):\n%s", pages, diff)
		}
		end := strings.TrimPrefix(query, "?limit=2&cursor=")
		if f := e.events(query); len(f.Data) != 0 || f.Meta.HasMore || f.Meta.NextCursor != end {
			t.Errorf("after the last event: %+v", f)
		}
		late := e.addEvent("taxpayer.contingency_ended").ID
		if f := e.events("?cursor=" + end); len(f.Data) != 1 || f.Data[0].ID != late || f.Meta.HasMore {
			t.Errorf("after the last event, with a new one: %+v", f)
		}
		if diff := cmp.Diff(append(want, late), e.events("?limit=100").ids()); diff != "" {
			t.Errorf("all (-want +got):\n%s", diff)
		}
	})
}

// The feed shows the stored bytes, with an absolute link.
func TestFeedShowsEventsAsTheyAreSent(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		n := e.addDocumentEvent()
		a := e.send(request{path: "events"})
		want := bytes.Replace(n.Body, []byte(`"self":"/v1/`), []byte(`"self":"https://invoices.example/v1/`), 1)
		if !bytes.HasPrefix(a.body, append([]byte(`{"data":[`), append(want, `],"meta":`...)...)) {
			t.Errorf("want %s, got %s", want, a)
		}
	})
}

func TestFeedWaitsForAnEvent(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		first := e.addEvent("taxpayer.contingency_started").ID
		if f := e.events("?wait=30"); len(f.Data) != 1 || f.Data[0].ID != first {
			t.Errorf("with an event: %+v", f)
		}
		cursor := e.events("").Meta.NextCursor
		waiting := e.sendAsync(request{path: "events?wait=30&cursor=" + cursor})
		e.awaitWaits(t, 1)
		added := e.addEvent("taxpayer.contingency_ended").ID
		a := receive(t, "an event", waiting)
		var f feed
		decode(t, a.body, &f)
		if len(f.Data) != 1 || f.Data[0].ID != added {
			t.Errorf("got %s", a)
		}
		// Without an event the wait ends after its time.
		cursor = f.Meta.NextCursor
		if f := e.events("?wait=1&cursor=" + cursor); len(f.Data) != 0 || f.Meta.NextCursor != cursor || f.Meta.HasMore {
			t.Errorf("without an event: %+v", f)
		}
	})
}

// A node is not notified of events that another node stores.
func TestFeedSeesEventsOfAnotherNode(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		if !strings.HasPrefix(address, "postgres") {
			return // only one process may use an SQLite file
		}
		opt := liveOptions()
		opt.masterKey = filepath.Join(t.TempDir(), "master.key")
		e := newEnv(t, address, opt)
		other := newNode(t, address, opt)
		other.taxpayer = e.taxpayer
		waiting := e.sendAsync(request{path: "events?wait=30"})
		e.awaitWaits(t, 1)
		added := other.addEvent("taxpayer.contingency_started").ID
		if a := receive(t, "an event", waiting); !bytes.Contains(a.body, []byte(added)) {
			t.Errorf("got %s", a)
		}
	})
}

func TestFeedRefusesBadParameters(t *testing.T) {
	eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
		e.addEvent("taxpayer.contingency_started")
		other := *e
		other.taxpayer = e.newTaxpayer()
		other.key = e.newKey(other.taxpayer, e.opt.environment, apikey.AllScopes()...)
		foreign := other.events("").Meta.NextCursor
		own := e.events("").Meta.NextCursor
		if foreign == own {
			t.Fatal("two taxpayers have the same cursor")
		}
		e.createEndpoint("a")
		e.createEndpoint("b")
		var page struct {
			Meta struct {
				NextCursor string `json:"next_cursor"`
			} `json:"meta"`
		}
		decode(t, e.send(request{path: "webhook-endpoints?limit=1"}).body, &page)
		for query, code := range map[string]string{
			"cursor=" + foreign: fiscal.CodeInvalidCursor, "cursor=" + page.Meta.NextCursor: fiscal.CodeInvalidCursor, "cursor=" + own[:len(own)-1]: fiscal.CodeInvalidCursor,
			"wait=31": fiscal.CodeOutOfRange, "wait=-1": fiscal.CodeOutOfRange, "wait=1.0": fiscal.CodeInvalidFormat, "wait=05": fiscal.CodeInvalidFormat,
			"wait=x": fiscal.CodeInvalidFormat, "wait=": fiscal.CodeTooShort, "wait=1&wait=1": fiscal.CodeDuplicateParameter,
			"limit=0": fiscal.CodeOutOfRange, "limit=101": fiscal.CodeOutOfRange, "since=2026-11-15": fiscal.CodeUnknownParameter,
		} {
			a := e.send(request{path: "events?" + query})
			if a.status != http.StatusBadRequest || a.code() != "bad_request" || a.details(t)[0].Code != code {
				t.Errorf("%s: want %s, got %s", query, code, a)
			}
		}
		for query := range map[string]bool{"wait=0": true, "wait=30&limit=1": true, "limit=100": true} {
			if f := e.events("?" + query); len(f.Data) != 1 {
				t.Errorf("%s: %+v", query, f)
			}
		}
		if f := other.events(""); len(f.Data) != 0 {
			t.Errorf("feed of another taxpayer: %+v", f)
		}
	})
}

// awaitWaits returns when n requests wait.
func (e *env) awaitWaits(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " requests wait"), func() bool { return e.api.Waiting() == n })
}
