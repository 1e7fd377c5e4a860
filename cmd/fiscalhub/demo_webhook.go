package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// demoListener is the server of an integrator. It verifies the webhooks that it
// receives, and prints and keeps their events.
type demoListener struct {
	progress func(lang.Message)

	mu       sync.Mutex
	secret   webhook.Secret
	received map[string]map[string]receivedEvent // by external id and event id
}

// receivedEvent is the part of an event that the demo keeps.
type receivedEvent struct {
	revision int64
	kind     string
	status   fiscal.Status
}

// ServeHTTP receives one event. The same event may arrive more than once.
func (l *demoListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := webhook.Verify(r.Header, body, time.Now(), l.secret); err != nil {
		http.Error(w, "the signature is not valid", http.StatusUnauthorized)
		return
	}
	var event struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			ExternalID string        `json:"external_id"`
			Status     fiscal.Status `json:"status"`
			Sequence   int64         `json:"sequence"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "the event cannot be read", http.StatusBadRequest)
		return
	}
	name := event.Data.ExternalID
	if _, again := l.received[name][event.ID]; !again {
		l.progress(lang.Messagef("%s  %-20s received by webhook, signature verified",
			"%s  %-20s recibido por webhook, firma verificada", name, strings.TrimPrefix(event.Type, "fiscal_document.")))
	}
	if l.received[name] == nil {
		l.received[name] = map[string]receivedEvent{}
	}
	l.received[name][event.ID] = receivedEvent{event.Data.Sequence, event.Type, event.Data.Status}
	w.WriteHeader(http.StatusNoContent)
}

// events returns the kinds of the events about an invoice, in the order in which
// the changes happened.
func (l *demoListener) events(externalID string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]receivedEvent, 0, len(l.received[externalID]))
	for _, e := range l.received[externalID] {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b receivedEvent) int {
		if a.revision != b.revision {
			return int(a.revision - b.revision)
		}
		return strings.Compare(a.kind, b.kind)
	})
	return mapEach(all, func(e receivedEvent) string { return e.kind })
}

// hasStatus reports whether an event has brought a status of an invoice.
func (l *demoListener) hasStatus(externalID string, status fiscal.Status) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.received[externalID] {
		if e.status == status {
			return true
		}
	}
	return false
}

// openListener starts the integrator's server. The caller calls closeIt.
func (d *demo) openListener() (closeIt func(), err error) {
	d.listener = &demoListener{progress: d.t.progress, received: map[string]map[string]receivedEvent{}}
	d.hook, closeIt, err = listen(d.t.ctx, d.listener)
	return closeIt, err
}

// subscribe creates a webhook endpoint for every kind of event.
func (d *demo) subscribe(ctx context.Context, s *store.Store, keys *seal.Keys) error {
	guard, err := demoPrivate.guard()
	if err != nil {
		return err
	}
	return useEndpoints(s, keys, guard, func(all *notify.Endpoints) error {
		made, err := all.Create(ctx, notify.EndpointSpec{Scope: d.scope, URL: d.hook, Kinds: []string{event.All}}, notify.Intent{})
		d.listener.secret = made.Secret
		return err
	})
}

// demoPrivate allows webhooks to a server of this machine.
var demoPrivate = privateFlag{WebhookAllowPrivate: true}

// awaitEvents waits until webhooks have brought the final status of every invoice.
func (d *demo) awaitEvents(ctx context.Context) error {
	var missing lang.Message
	complete := func() (bool, error) {
		for _, s := range d.samples {
			if !d.listener.hasStatus(s.externalID, fiscal.Status(s.goal)) {
				missing = lang.Messagef("no event says that %s is %s", "ningún evento dice que %s está en %s", s.externalID, s.goal)
				return false, nil
			}
		}
		return true, nil
	}
	return await(ctx, complete, func() lang.Message { return missing })
}
