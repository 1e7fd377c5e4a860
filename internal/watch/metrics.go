package watch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// metrics are the figures of the watcher.
type metrics struct {
	overdueTotal *prometheus.CounterVec
	contingency  prometheus.Gauge
}

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{overdueTotal: metric.NewCounters(metric.OverdueTotal), contingency: metric.NewGauge(metric.Contingency)}
	if to != nil {
		to.MustRegister(m.overdueTotal, m.contingency)
	}
	return m
}

func (m *metrics) overdue(reason string) { m.overdueTotal.WithLabelValues(reason).Inc() }

func (m *metrics) setContingency(active bool) {
	if active {
		m.contingency.Set(1)
	} else {
		m.contingency.Set(0)
	}
}

// comparerMetrics are the figures of the comparer.
type comparerMetrics struct {
	comparisons   *prometheus.CounterVec
	differences   *prometheus.CounterVec
	lastCompared  prometheus.Gauge
	comparisonLag prometheus.Gauge
}

func newComparerMetrics(to prometheus.Registerer) *comparerMetrics {
	m := &comparerMetrics{
		comparisons: metric.NewCounters(metric.CompareTotal), differences: metric.NewCounters(metric.DifferentTotal),
		lastCompared: metric.NewGauge(metric.LastCompared), comparisonLag: metric.NewGauge(metric.CompareLag),
	}
	if to != nil {
		to.MustRegister(m.comparisons, m.differences, m.lastCompared, m.comparisonLag)
	}
	return m
}

func (m *comparerMetrics) count(o outcome) { m.comparisons.WithLabelValues(string(o)).Inc() }

func (m *comparerMetrics) difference(kind store.DifferenceKind) {
	m.differences.WithLabelValues(string(kind)).Inc()
}

func (m *comparerMetrics) setCompared(at time.Time) {
	if !at.IsZero() {
		m.lastCompared.Set(float64(at.UnixMilli()) / 1000)
	}
}

// setLag records how far the first comparisons are behind: next is the next document,
// if there is one, and documents up to due are due.
func (m *comparerMetrics) setLag(next store.Position, due time.Time) {
	if next.DocumentID == "" {
		m.comparisonLag.Set(0)
		return
	}
	m.comparisonLag.Set(due.Sub(next.At).Seconds())
}
