package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// demoListener is the server of an integrator: it verifies the events that it is
// sent, and says what they tell.
type demoListener struct {
	say func(format string, args ...any)

	mu     sync.Mutex
	secret webhook.Secret
	heard  map[string]map[string]heardEvent // by external id and event id
}

// heardEvent is what is kept of an event.
type heardEvent struct {
	sequence int64
	kind     string
	status   fiscal.Status
}

// ServeHTTP takes one event. It may come more than once.
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
	if _, again := l.heard[name][event.ID]; !again {
		l.say("%s  %-20s told by webhook, signature verified", name, strings.TrimPrefix(event.Type, "fiscal_document."))
	}
	if l.heard[name] == nil {
		l.heard[name] = map[string]heardEvent{}
	}
	l.heard[name][event.ID] = heardEvent{event.Data.Sequence, event.Type, event.Data.Status}
	w.WriteHeader(http.StatusNoContent)
}

// events are the kinds of events about an invoice, in the order of what they
// tell.
func (l *demoListener) events(externalID string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]heardEvent, 0, len(l.heard[externalID]))
	for _, e := range l.heard[externalID] {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b heardEvent) int {
		if a.sequence != b.sequence {
			return int(a.sequence - b.sequence)
		}
		return strings.Compare(a.kind, b.kind)
	})
	kinds := make([]string, len(all))
	for i, e := range all {
		kinds[i] = e.kind
	}
	return kinds
}

// knows tells whether an event has told a status of an invoice.
func (l *demoListener) knows(externalID string, status fiscal.Status) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.heard[externalID] {
		if e.status == status {
			return true
		}
	}
	return false
}

// openListener starts the integrator's server.
func (d *demo) openListener() (closeIt func(), err error) {
	d.listener = &demoListener{say: d.t.say, heard: map[string]map[string]heardEvent{}}
	d.hook, closeIt, err = listen(d.t.ctx, d.listener)
	return closeIt, err
}

// subscribe has the integrator's server told of everything.
func (d *demo) subscribe(ctx context.Context, s *store.Store, keys *seal.Keys) error {
	guard, err := demoPrivate.guard()
	if err != nil {
		return err
	}
	poster, err := webhook.New(webhook.Options{Now: time.Now, Guard: guard})
	if err != nil {
		return err
	}
	defer poster.Close()
	all, err := notify.NewEndpoints(notify.EndpointsOptions{
		Store: s, Secrets: access.NewSecrets(s, keys), Poster: poster, Guard: guard, Now: time.Now,
	})
	if err != nil {
		return err
	}
	made, err := all.Create(ctx, notify.NewEndpoint{Scope: d.scope, URL: d.hook, Kinds: []string{event.All}}, notify.Intent{})
	d.listener.secret = made.Secret
	return err
}

// demoPrivate lets the service tell a server of this machine.
var demoPrivate = privateFlag{WebhookAllowPrivate: true}

// hear waits until events have told where every invoice is.
func (d *demo) hear(ctx context.Context) error {
	missing := ""
	told := func() (bool, error) {
		for _, s := range d.samples {
			if !d.listener.knows(s.externalID, fiscal.Status(s.goal)) {
				missing = fmt.Sprintf("no event has told that %s is %s", s.externalID, s.goal)
				return false, nil
			}
		}
		return true, nil
	}
	return await(ctx, told, func() string { return missing })
}

// shared is a writer for several goroutines.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
