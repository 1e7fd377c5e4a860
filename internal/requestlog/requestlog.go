// Package requestlog stores the log of API requests that the console shows. Requests are
// queued and written in the background, a bounded number each second: no answer waits for
// the log, and a busy service drops entries rather than slow down creations.
package requestlog

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	queueSize = 4096
	// roomForErrors is the part of the queue that only failed requests use. They are
	// what people look for.
	roomForErrors = queueSize / 4
	// batchSize is how many requests a transaction stores, and batchesPerTick how many
	// transactions there are in each writeEvery.
	batchSize      = 250
	batchesPerTick = 1
	writeEvery     = 500 * time.Millisecond
	writeTime      = 5 * time.Second // for a batch
	// KeptPerTaxpayer is how many requests of a taxpayer are kept.
	KeptPerTaxpayer = 100_000
	// trimEvery is after how many requests of a taxpayer its oldest ones are deleted.
	trimEvery = 2000
)

// Options configure a Log. Store, Env and Log are required.
type Options struct {
	Store   *store.Store
	Env     fiscal.Environment
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: metrics are not registered
	// Keep replaces KeptPerTaxpayer, for tests.
	Keep int
}

// Log is the log of the requests that this node answers.
type Log struct {
	o       Options
	queue   chan store.LoggedRequest
	dropped *prometheus.CounterVec
	written map[string]int // requests of a taxpayer since the last time that it was trimmed
	failing atomic.Bool
}

// New returns a log. It fails when an option is missing.
func New(o Options) (*Log, error) {
	if o.Store == nil || o.Env == "" || o.Log == nil {
		return nil, errors.New("requestlog: Options are incomplete")
	}
	if o.Keep == 0 {
		o.Keep = KeptPerTaxpayer
	}
	l := &Log{
		o: o, queue: make(chan store.LoggedRequest, queueSize),
		dropped: metric.NewCounters(metric.RequestLogDropped), written: map[string]int{},
	}
	if o.Metrics != nil {
		o.Metrics.MustRegister(l.dropped)
	}
	return l, nil
}

// Add queues a request. It never blocks: when the queue is full, it drops the request and
// counts it.
func (l *Log) Add(q store.LoggedRequest) {
	if q.Code == "" && len(l.queue) >= queueSize-roomForErrors {
		l.dropped.WithLabelValues("queue_full").Inc()
		return
	}
	select {
	case l.queue <- q:
	default:
		l.dropped.WithLabelValues("queue_full").Inc()
	}
}

// Run writes requests until ctx ends, and then those that are queued.
func (l *Log) Run(ctx context.Context) {
	work := context.WithoutCancel(ctx) // what was taken out of the queue is written
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for range batchesPerTick {
				l.write(work)
			}
		case <-ctx.Done():
			l.Flush(work)
			return
		}
	}
}

// Flush writes all requests that are queued.
func (l *Log) Flush(ctx context.Context) {
	for range queueSize/batchSize + 1 {
		if !l.write(ctx) {
			return
		}
	}
}

// write stores one batch. It returns false when there was none, or when it failed.
func (l *Log) write(ctx context.Context) bool {
	var batch []store.LoggedRequest
	for len(batch) < batchSize && len(l.queue) > 0 {
		batch = append(batch, <-l.queue)
	}
	if len(batch) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := l.o.Store.LogRequests(ctx, batch); err != nil {
		l.dropped.WithLabelValues("not_written").Add(float64(len(batch)))
		if !l.failing.Swap(true) {
			l.o.Log.Warn("Cannot write the log of requests. Entries are dropped until the database accepts them.", "error", err.Error())
		}
		return false
	}
	l.failing.Store(false)
	for _, q := range batch {
		l.written[q.TaxpayerID]++
	}
	l.trim(ctx)
	return true
}

// trim deletes the oldest requests of a taxpayer that has written many.
func (l *Log) trim(ctx context.Context) {
	for taxpayer, n := range l.written {
		if n < min(trimEvery, l.o.Keep) {
			continue
		}
		l.written[taxpayer] = 0
		if _, err := l.o.Store.TrimRequests(ctx, store.Scope{Environment: l.o.Env, TaxpayerID: taxpayer}, l.o.Keep); err != nil {
			l.o.Log.Warn("Cannot delete old entries of the log of requests. The next ones of the taxpayer try again.", "taxpayer_id", taxpayer, "error", err.Error())
		}
	}
}
