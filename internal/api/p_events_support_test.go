package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// liveOptions are those of a service that sends events. Its authority accepts all at once.
func liveOptions() options {
	return options{env: fiscal.Certification, plan: scripted{}, poster: &poster{}}
}

// poster stands for the network: it keeps what is posted, and answers as told.
type poster struct {
	mu     sync.Mutex
	posted []webhook.Message
	answer func(context.Context, webhook.Message) webhook.Result // nil: 204
}

// Post keeps the message.
func (p *poster) Post(ctx context.Context, m webhook.Message) webhook.Result {
	p.mu.Lock()
	p.posted = append(p.posted, m)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return webhook.Result{Status: http.StatusNoContent}
	}
	return answer(ctx, m)
}

func (p *poster) say(r webhook.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(context.Context, webhook.Message) webhook.Result { return r }
}

// tell tells the taxpayer something.
func (w *world) tell(kind string) store.Event {
	w.t.Helper()
	n := w.notice(kind)
	w.must(w.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(w.t.Context(), n) }))
	w.feed.Wake(n.Scope)
	return n
}

func (w *world) notice(kind string) store.Event {
	n, err := pipeline.NewEvent(w.scope(), kind, w.opt.now(), map[string]any{"object": "taxpayer", "id": w.taxpayer})
	w.must(err)
	return n
}

// tellOfDocument tells of a document, with a link.
func (w *world) tellOfDocument() store.Event {
	w.t.Helper()
	document := store.NewID()
	n, err := pipeline.NewEvent(w.scope(), "fiscal_document.accepted", w.opt.now(), map[string]any{
		"object": "fiscal_document", "id": document, "invoice_id": store.NewID(), "external_id": `"links":{"self":"/v1/`, "ecf_type": "31",
		"status": "accepted", "previous_status": "processing", "sequence": 4, "encf": "E310000000001", "track_id": "t", "issue_date": "2026-11-14",
		"total": "590.00", "links": map[string]any{"self": "/v1/taxpayers/" + w.taxpayer + "/fiscal-documents/" + document},
	})
	w.must(err)
	w.must(w.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(w.t.Context(), n) }))
	w.feed.Wake(n.Scope)
	return n
}

// endpoint is a webhook endpoint as the API answers it.
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

// hook makes an endpoint.
func (w *world) hook(idem string, kinds ...string) endpoint {
	w.t.Helper()
	a := w.send(request{method: http.MethodPost, path: "webhook-endpoints", idem: idem, body: endpointBody("https://erp.example.com/"+idem, kinds...)})
	if a.status != http.StatusCreated {
		w.t.Fatalf("want 201, got %s", a)
	}
	var e endpoint
	a.data(w.t, &e)
	return e
}

// post sends a command that needs no idempotency key.
func (w *world) post(path, body string) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: path, body: []byte(body)})
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
func (w *world) events(query string) feed {
	w.t.Helper()
	a := w.send(request{path: "events" + query})
	if a.status != http.StatusOK {
		w.t.Fatalf("events%s: %s", query, a)
	}
	var f feed
	decode(w.t, a.body, &f)
	return f
}

// soon fails when something that should happen now does not.
func soon[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: not within 20 seconds", what)
		panic("unreachable")
	}
}

// sendLater makes an exchange in the background.
func (w *world) sendLater(r request) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		a, err := w.try(r)
		if err != nil {
			a.body = fmt.Append(nil, err)
		}
		c <- a
	}()
	return c
}
