// Package monitor shows what the database knows of an environment as figures for
// Prometheus: jobs, webhooks, certificates, number ranges. All nodes show the same values.
// What a single node does is counted where it happens.
package monitor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// readEvery is for how long figures are shown again, so that many scrapes cost no
	// more than one.
	readEvery = 10 * time.Second
	// readTime bounds the time for reading them.
	readTime = 2 * time.Second
	// mostCounted is how many rows a figure counts at most.
	mostCounted = 10_000
)

// Options configure a Monitor. All are required.
type Options struct {
	Store *store.Store
	Env   fiscal.Environment
	Now   func() time.Time
	Log   *slog.Logger
}

// Monitor is a collector of Prometheus. A scrape costs the same however many documents
// and deliveries wait.
type Monitor struct {
	o     Options
	descs map[string]*prometheus.Desc

	mu     sync.Mutex // held while figures are read: scrapes at the same moment share them
	readAt time.Time
	read   figures
	failed bool
}

// figures are what one read of the database has found.
type figures struct {
	jobs       []store.JobFigure
	deliveries []store.DeliveryFigure
	endpoints  map[string]int64
	ends       []time.Time // of certificates
	numbers    []store.NumberFigure
}

// New returns a monitor. It fails when an option is missing.
func New(o Options) (*Monitor, error) {
	if o.Store == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("monitor: Options are incomplete")
	}
	m := &Monitor{o: o, descs: map[string]*prometheus.Desc{}}
	for _, name := range m.names() {
		m.descs[name] = metric.NewDesc(name)
	}
	return m, nil
}

// names returns the metrics of the monitor.
func (m *Monitor) names() []string {
	all := []string{metric.FiguresRead, metric.Jobs, metric.JobAge, metric.JobLag}
	if m.o.Env == fiscal.Sandbox {
		return all
	}
	return append(all, metric.Deliveries, metric.DeliveryAge, metric.Endpoints, metric.CertificateRemaining, metric.TaxpayersExpiring,
		metric.NumbersLeft, metric.TaxpayersLow, metric.FencedRanges)
}

// Describe sends the descriptions of the metrics.
func (m *Monitor) Describe(to chan<- *prometheus.Desc) {
	for _, d := range m.descs {
		to <- d
	}
}

// Collect sends the current values. When the database does not answer in time it sends
// only FiguresRead, with 0.
func (m *Monitor) Collect(to chan<- prometheus.Metric) {
	// A collector gets no context, and a scrape that was cut off ends by readTime.
	ctx, cancel := context.WithTimeout(context.Background(), readTime) //nolint:forbidigo // see above
	defer cancel()
	send := func(name string, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.descs[name], prometheus.GaugeValue, value, labels...)
	}
	f, ok := m.figures(ctx)
	if !ok {
		send(metric.FiguresRead, 0)
		return
	}
	now := m.o.Now()
	send(metric.FiguresRead, 1)
	f.sendJobs(send, m.o.Env != fiscal.Sandbox, now)
	if m.o.Env != fiscal.Sandbox {
		f.sendWebhooks(send, now)
		f.sendPreparation(send, now)
	}
}

// figures returns the figures of the last read, or reads them when that is too old.
func (m *Monitor) figures(ctx context.Context) (figures, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Now()
	if age := now.Sub(m.readAt); age >= 0 && age < readEvery {
		return m.read, !m.failed
	}
	read, err := m.readFigures(ctx, now)
	if err != nil && !m.failed {
		m.o.Log.Warn("Cannot read the figures of the database for /metrics. They are missing until the database answers.", "error", err.Error())
	}
	m.read, m.readAt, m.failed = read, now, err != nil
	return m.read, !m.failed
}

func (m *Monitor) readFigures(ctx context.Context, now time.Time) (f figures, err error) {
	if f.jobs, err = m.o.Store.JobFigures(ctx, m.o.Env, now, mostCounted); err != nil || m.o.Env == fiscal.Sandbox {
		return f, err
	}
	if f.deliveries, err = m.o.Store.DeliveryFigures(ctx, m.o.Env, mostCounted); err != nil {
		return f, err
	}
	if f.endpoints, err = m.o.Store.EndpointFigures(ctx, m.o.Env); err != nil {
		return f, err
	}
	if f.ends, err = m.o.Store.CertificateEnds(ctx, m.o.Env); err != nil {
		return f, err
	}
	f.numbers, err = m.o.Store.NumberFigures(ctx, m.o.Env, fiscal.DateOf(now))
	return f, err
}
