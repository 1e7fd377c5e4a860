package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	maxTries     = 4 // of one batch
	firstPause   = time.Second
	maxPause     = 30 * time.Second
	closeTimeout = 5 * time.Second
)

// A Sender sends encoded spans to a collector. This package opens no connection itself:
// the sandbox contains it, and the sandbox connects to nothing.
type Sender interface {
	// Send makes one attempt. After a failure wait is how long the collector asks to wait,
	// and negative when another attempt would not help.
	Send(ctx context.Context, body []byte) (wait time.Duration, err error)
}

// Options configure a Tracer. All are required.
type Options struct {
	Config Config
	Sender Sender
	Now    func() time.Time
	Log    *slog.Logger
}

// New returns a tracer. Run exports its spans; Close ends Run.
func New(o Options) (*Tracer, error) {
	if o.Config.endpoint == "" || o.Sender == nil || o.Now == nil || o.Log == nil {
		return nil, errors.New("trace: options: Config, Sender, Now and Log are required")
	}
	return &Tracer{
		config: o.Config, now: o.Now, sender: o.Sender, log: o.Log,
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
}

// flush exports what is queued. Spans that cannot be exported are dropped: traces are an
// aid, and the service does not depend on them.
func (t *Tracer) flush(ctx context.Context, last bool) {
	for batch := t.take(); len(batch) > 0; batch = t.take() {
		if err := t.export(ctx, batch, last); err != nil {
			t.log.Warn("Cannot export spans to the trace collector. These spans are lost; later ones are tried.",
				"spans", len(batch), "endpoint", t.config.Endpoint(), "error", err.Error())
		}
	}
	if n := t.takeDropped(); n > 0 {
		t.log.Warn("Spans were dropped, because the trace collector is slower than the service.", "spans", n, "endpoint", t.config.Endpoint())
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
		wait, err := t.sender.Send(ctx, body)
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
