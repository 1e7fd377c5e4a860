package watch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// metrics are the figures of the watcher.
type metrics struct {
	overdueTotal *prometheus.CounterVec
	contingency  prometheus.Gauge
}

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{
		overdueTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fiscalhub_documents_overdue_total",
			Help: "Documents that had no verdict for 15 minutes, or an unknown outcome for 24 hours, by reason.",
		}, []string{"reason"}),
		contingency: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fiscalhub_contingency",
			Help: "1 while a contingency lasts: the tax authority is out of reach of all nodes.",
		}),
	}
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
		comparisons: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fiscalhub_comparisons_total",
			Help: "Accepted documents that this node compared with the tax authority, by result.",
		}, []string{"result"}),
		differences: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fiscalhub_differences_total",
			Help: "Accepted documents that the tax authority shows differently, by kind of difference. Each is an alarm.",
		}, []string{"kind"}),
		lastCompared: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fiscalhub_comparison_last_timestamp_seconds",
			Help: "When any node last compared a document with the tax authority, in seconds since 1970.",
		}),
		comparisonLag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fiscalhub_comparison_lag_seconds",
			Help: "For how long the next accepted document has been due for its first comparison.",
		}),
	}
	for _, kind := range store.DifferenceKinds() {
		m.differences.WithLabelValues(string(kind)) // so that an alarm can watch it from the start
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
