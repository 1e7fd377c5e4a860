package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxTries     = 4 // of one batch
	firstPause   = time.Second
	maxPause     = 30 * time.Second
	maxAnswer    = 64 << 10
	closeTimeout = 5 * time.Second
)

// Options configure a Tracer.
type Options struct {
	Config Config
	HTTP   *http.Client // without a Timeout: the config has one
	Now    func() time.Time
	Log    *slog.Logger
}

// poster sends requests and reports problems.
type poster struct {
	http *http.Client
	log  *slog.Logger
}

// New returns a tracer. Run exports its spans; Close ends Run.
func New(o Options) (*Tracer, error) {
	if o.Config.endpoint == "" || o.HTTP == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("trace: options: Config, HTTP, Now and Log are required")
	}
	h := *o.HTTP
	h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the headers may have a secret
	return &Tracer{
		config: o.Config, now: o.Now, post: poster{&h, o.Log},
		full: make(chan struct{}, 1), ended: make(chan struct{}), stopped: make(chan struct{}),
	}, nil
}

// Run exports spans until Close. Call it once, on a goroutine of its own.
func (t *Tracer) Run(ctx context.Context) {
	defer close(t.stopped)
	tick := time.NewTicker(t.config.delay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-t.full:
		case <-t.ended:
			t.flush(ctx, true)
			return
		}
		t.flush(ctx, false)
	}
}

// Close exports the spans that are queued and ends Run. It gives up after five seconds.
// On a nil Tracer it does nothing.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	close(t.ended)
	select {
	case <-t.stopped:
	case <-time.After(closeTimeout):
	}
	t.post.http.CloseIdleConnections()
}

// flush exports what is queued. Spans that cannot be exported are dropped: traces are an
// aid, and the service does not depend on them.
func (t *Tracer) flush(ctx context.Context, last bool) {
	for batch := t.take(); len(batch) > 0; batch = t.take() {
		if err := t.export(ctx, batch, last); err != nil {
			t.post.log.Warn("Cannot export spans to the trace collector. These spans are lost; later ones are tried.",
				"spans", len(batch), "endpoint", t.config.Endpoint(), "error", err.Error())
		}
	}
	if n := t.takeDropped(); n > 0 {
		t.post.log.Warn("Spans were dropped, because the trace collector is slower than the service.", "spans", n, "endpoint", t.config.Endpoint())
	}
}

// export sends a batch, and sends it again while the collector asks for that. The last
// batch before the end is sent once.
func (t *Tracer) export(ctx context.Context, batch []record, last bool) error {
	body, err := t.encode(batch)
	if err != nil {
		return err
	}
	for try, pause := 1, firstPause; ; try, pause = try+1, min(2*pause, maxPause) {
		wait, err := t.send(ctx, body)
		if err == nil || wait < 0 || last || try == maxTries {
			return err
		}
		select {
		case <-time.After(min(max(wait, pause), maxPause)):
		case <-t.ended:
			last = true
		case <-ctx.Done():
			return err
		}
	}
}

func (t *Tracer) encode(batch []record) ([]byte, error) {
	body, err := encodeProtobuf(t.config.attributes, batch), error(nil)
	if t.config.json {
		body, err = encodeJSON(t.config.attributes, batch)
	}
	if err != nil || !t.config.gzip {
		return body, err
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, err = w.Write(body)
	err = errors.Join(err, w.Close())
	return small.Bytes(), err
}

// send posts a request once. After a failure wait is how long the collector asks to wait,
// or -1 when another try would not help.
func (t *Tracer) send(ctx context.Context, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.config.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.config.endpoint, bytes.NewReader(body))
	if err != nil {
		return -1, errors.New("the address of the collector is not valid")
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if t.config.json {
		req.Header.Set("Content-Type", "application/json")
	}
	if t.config.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	req.Header.Set("User-Agent", "fiscalhub")
	for name, value := range t.config.headers {
		req.Header.Set(name, value)
	}
	res, err := t.post.http.Do(req)
	var quoted *url.Error
	if errors.As(err, &quoted) {
		err = quoted.Err // without the address, which may have a secret in its query
	}
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // lets the connection be used again
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return 0, nil
	}
	err = fmt.Errorf("the collector answered %d", res.StatusCode)
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if seconds, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 16); err == nil {
			wait = time.Duration(seconds) * time.Second
		}
		return wait, err
	}
	return -1, err
}
