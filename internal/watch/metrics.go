package watch

import "github.com/prometheus/client_golang/prometheus"

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
