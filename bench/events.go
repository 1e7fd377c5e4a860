package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	eventEndpoints = 4
	eventNotices   = 500 // told to each endpoint
	eventPosts     = 4   // at a time to one endpoint
	eventRate      = 25  // documents a second, for the time to the first attempt
	eventTime      = 8 * time.Second
)

// events measures how fast endpoints are told of what waits for them, and how
// soon of what has just happened.
func (b *bench) events(ctx context.Context) error {
	for _, engine := range storetest.Engines() {
		b.say("events on %s", engine)
		if err := b.backlog(ctx, engine); err != nil {
			return err
		}
		if err := b.firstAttempt(ctx, engine); err != nil {
			return err
		}
	}
	return nil
}

// A listener is where events go: it remembers when each came.
type listener struct {
	url    string
	server *http.Server
	mu     sync.Mutex
	came   []time.Time
	waits  []time.Duration // from the moment that an event tells to its arrival
	told   chan struct{}
}

func listen(ctx context.Context) (*listener, error) {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &listener{url: "http://" + socket.Addr().String() + "/hook", told: make(chan struct{}, 1)}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = l.server.Serve(socket) }()
	return l, nil
}

func (l *listener) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	body, err := io.ReadAll(r.Body)
	var event struct {
		Timestamp time.Time `json:"timestamp"`
	}
	if err != nil || json.Unmarshal(body, &event) != nil {
		return
	}
	l.mu.Lock()
	l.came, l.waits = append(l.came, now), append(l.waits, now.Sub(event.Timestamp))
	l.mu.Unlock()
	select {
	case l.told <- struct{}{}:
	default:
	}
}

// wait waits for a number of events, or until no more come.
func (l *listener) wait(ctx context.Context, count int) error {
	for {
		l.mu.Lock()
		n := len(l.came)
		l.mu.Unlock()
		if n >= count {
			return nil
		}
		select {
		case <-l.told:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Second):
			return fmt.Errorf("%d of %d events came", n, count)
		}
	}
}

// backlog is how many events a second reach endpoints for which many wait,
// beside bare posts of the same size, as many at a time.
func (b *bench) backlog(ctx context.Context, engine string) error {
	address, err := b.database(engine, "events")
	if err != nil {
		return err
	}
	b.data = filepath.Join(b.dir, "data-events-"+engine)
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.server.Close() }()
	taxpayer, err := b.field(ctx, address, "id", "taxpayer", "create", "--rnc", "199000013", "--legal-name", "Banco de Pruebas, SRL")
	if err != nil {
		return err
	}
	for range eventEndpoints {
		if err := b.endpoint(ctx, address, taxpayer, l.url); err != nil {
			return err
		}
	}
	body, err := writeNotices(ctx, address, taxpayer)
	if err != nil {
		return err
	}
	s, err := b.startIn(ctx, "certification", address, "--webhook-allow-private", "--no-witness")
	if err != nil {
		return err
	}
	err = l.wait(ctx, eventEndpoints*eventNotices)
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	rate := float64(len(l.came)-1) / l.came[len(l.came)-1].Sub(l.came[0]).Seconds()
	floor, err := barePosts(ctx, l.url, body)
	if err != nil {
		return err
	}
	b.row("events delivered/s, "+engine, fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", floor), rate/floor, "",
		fmt.Sprintf("bare posts of the same size, %d at a time", eventEndpoints*eventPosts))
	return nil
}

// writeNotices leaves events to be told, and returns what one looks like.
func writeNotices(ctx context.Context, address, taxpayer string) ([]byte, error) {
	s, err := openStore(ctx, address)
	if err != nil {
		return nil, err
	}
	scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: taxpayer}
	var body []byte
	for n := range eventNotices {
		at := time.Now()
		notice := store.Event{Scope: scope, ID: event.NewID(), Kind: "fiscal_document.accepted", DocumentID: store.NewID(), Revision: int64(n), At: at}
		body, err = json.Marshal(map[string]any{
			"id": notice.ID, "type": notice.Kind, "timestamp": at.UTC().Format(time.RFC3339Nano), "api_version": "v1",
			"environment": scope.Environment, "taxpayer_id": taxpayer,
			"data": map[string]any{
				"object": "fiscal_document", "id": notice.DocumentID, "invoice_id": store.NewID(), "external_id": "INV-0001", "ecf_type": "31",
				"status": "accepted", "previous_status": "processing", "sequence": n, "encf": "E310000000001", "track_id": store.NewID(),
				"issue_date": "2026-11-14", "total": "1180.00", "links": map[string]any{"self": "/v1/taxpayers/" + taxpayer + "/fiscal-documents/" + notice.DocumentID},
			},
		})
		if err == nil {
			notice.Body = body
			err = s.Update(ctx, func(tx *store.Tx) error { return tx.AddEvent(ctx, notice) })
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return body, s.Close()
}

// barePosts is how many posts of the body a second this process makes.
func barePosts(ctx context.Context, url string, body []byte) (float64, error) {
	const clients, each = eventEndpoints * eventPosts, 200
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	start := time.Now()
	failed := make(chan error, clients)
	for range clients {
		go func() {
			for range each {
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
				if err == nil {
					var answer *http.Response
					if answer, err = client.Do(request); err == nil {
						_, _ = io.Copy(io.Discard, answer.Body)
						err = answer.Body.Close()
					}
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	var err error
	for range clients {
		err = errors.Join(err, <-failed)
	}
	return clients * each / time.Since(start).Seconds(), err
}

// firstAttempt is the time from a change to its event's arrival, while documents
// are issued at a steady rate.
func (b *bench) firstAttempt(ctx context.Context, engine string) error {
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.server.Close() }()
	w, err := b.startTown(ctx, engine, "first_attempt", 0, "--webhook-allow-private")
	if err != nil {
		return err
	}
	next := w.newInvoices(w.key)
	err = b.endpoint(ctx, w.database, w.taxpayer, l.url)
	if err == nil {
		_, err = w.open(ctx, 8, eventRate, eventTime, func(n int) []byte { return next(0, n) })
	}
	if err == nil {
		err = w.wait(ctx, time.Minute)
	}
	if err == nil {
		err = l.wait(ctx, 3*int(eventRate*eventTime.Seconds())) // submitted, accepted, artifacts ready
	}
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	slices.Sort(l.waits)
	b.fact("commit to first attempt at "+fmt.Sprint(eventRate)+" documents/s, p50, "+engine, milliseconds(l.waits[len(l.waits)/2]), "")
	b.fact("  p99", milliseconds(l.waits[len(l.waits)*99/100]), "≤ 1 s")
	return nil
}

// endpoint has a taxpayer's events told to an address.
func (b *bench) endpoint(ctx context.Context, database, taxpayer, url string) error {
	_, err := b.field(ctx, database, "id", "webhook", "create", "--taxpayer", taxpayer, "--environment", "certification",
		"--url", url, "--event", "*", "--webhook-allow-private")
	return err
}
