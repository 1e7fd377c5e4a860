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
)

const (
	eventEndpoints = 4
	eventCount     = 6000 // for each endpoint
	eventPosts     = 4    // parallel posts to one endpoint
	eventRate      = 25   // documents per second, for the time to the first attempt
	eventTime      = 8 * time.Second
)

// events measures how fast the service delivers waiting events, and how soon after a
// change it sends the event.
func (b *bench) events(ctx context.Context) error {
	return b.onEngines(ctx, b.waitingEvents, b.firstAttempt)
}

// A listener is the server of an endpoint. It records when each event arrives.
type listener struct {
	url    string
	server *http.Server
	mu     sync.Mutex
	times  []time.Time     // of the arrivals
	waits  []time.Duration // from the time of the change to the arrival
	arrive chan struct{}
}

func listen(ctx context.Context) (*listener, error) {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &listener{url: "http://" + socket.Addr().String() + "/hook", arrive: make(chan struct{}, 1)}
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
	l.times, l.waits = append(l.times, now), append(l.waits, now.Sub(event.Timestamp))
	l.mu.Unlock()
	select {
	case l.arrive <- struct{}{}:
	default:
	}
}

// wait waits for a number of events. It fails when none arrives for 20 seconds.
func (l *listener) wait(ctx context.Context, count int) error {
	for {
		l.mu.Lock()
		n := len(l.times)
		l.mu.Unlock()
		if n >= count {
			return nil
		}
		select {
		case <-l.arrive:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Second):
			return fmt.Errorf("%d of %d events arrived", n, count)
		}
	}
}

// waitingEvents measures how many waiting events per second the service delivers. The
// baseline is posts of the same size without the service, before and after.
func (b *bench) waitingEvents(ctx context.Context, engine string) error {
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
	body, err := writeEvents(ctx, address, taxpayer)
	if err != nil {
		return err
	}
	before, err := plainPosts(ctx, l.url, body)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.times = nil
	l.mu.Unlock()
	s, err := b.startAlone(ctx, "certification", address, "--webhook-allow-private", "--no-witness")
	if err != nil {
		return err
	}
	err = l.wait(ctx, eventEndpoints*eventCount)
	after, usageErr := s.usage(ctx)
	if err := errors.Join(err, usageErr, s.stop()); err != nil {
		return err
	}
	rate := float64(len(l.times)-1) / l.times[len(l.times)-1].Sub(l.times[0]).Seconds()
	baseline, err := plainPosts(ctx, l.url, body)
	if err != nil {
		return err
	}
	baseline = (before + baseline) / 2
	b.row("events delivered/s, "+engine, rateText(rate), rateText(baseline), rate/baseline, "≥ 0.25",
		fmt.Sprintf("posts of the same size without the service, %d at a time", eventEndpoints*eventPosts))
	b.used(usage{}, after, eventEndpoints*eventCount, "event, with the start of the service")
	return nil
}

// writeEvents stores events that wait for delivery, and returns the body of the last.
func writeEvents(ctx context.Context, address, taxpayer string) ([]byte, error) {
	s, err := openStore(ctx, address)
	if err != nil {
		return nil, err
	}
	scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: taxpayer}
	var body []byte
	for n := range eventCount {
		at := time.Now()
		stored := store.Event{Scope: scope, ID: event.NewID(), Kind: "fiscal_document.accepted", DocumentID: store.NewID(), Revision: int64(n), At: at}
		body, err = json.Marshal(map[string]any{
			"id": stored.ID, "type": stored.Kind, "timestamp": at.UTC().Format(time.RFC3339Nano), "api_version": "v1",
			"environment": scope.Environment, "taxpayer_id": taxpayer,
			"data": map[string]any{
				"object": "fiscal_document", "id": stored.DocumentID, "invoice_id": store.NewID(), "external_id": "INV-0001", "ecf_type": "31",
				"status": "accepted", "previous_status": "processing", "sequence": n, "encf": "E310000000001", "track_id": store.NewID(),
				"issue_date": "2026-11-14", "total": "1180.00", "links": map[string]any{"self": "/v1/taxpayers/" + taxpayer + "/fiscal-documents/" + stored.DocumentID},
			},
		})
		if err == nil {
			stored.Body = body
			err = s.Update(ctx, func(tx *store.Tx) error { return tx.AddEvent(ctx, stored) })
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return body, s.Close()
}

// plainPosts returns how many posts of a body per second this process sends.
func plainPosts(ctx context.Context, url string, body []byte) (float64, error) {
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

// firstAttempt measures the time from a change to the arrival of its event, while the
// service issues documents at a steady rate.
func (b *bench) firstAttempt(ctx context.Context, engine string) error {
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.server.Close() }()
	w, err := b.startLive(ctx, engine, "first_attempt", 0, "--webhook-allow-private")
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

// endpoint creates a webhook endpoint for every kind of event.
func (b *bench) endpoint(ctx context.Context, database, taxpayer, url string) error {
	_, err := b.field(ctx, database, "id", "webhook", "create", "--taxpayer", taxpayer, "--environment", "certification",
		"--url", url, "--event", "*", "--webhook-allow-private")
	return err
}
