package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/metric"
)

// metrics are the Prometheus metrics of the API. Label values are route patterns
// and members of closed lists, never text of a client.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	shed     *prometheus.CounterVec
	replays  prometheus.Counter
	refused  *prometheus.CounterVec
}

func newMetrics(to prometheus.Registerer, c *capacity.Capacity) *metrics {
	m := &metrics{
		requests: metric.NewCounters(metric.RequestTotal),
		seconds:  metric.NewHistograms(metric.RequestTime),
		inFlight: metric.NewGauge(metric.InFlight),
		shed:     metric.NewCounters(metric.ShedTotal),
		replays:  metric.NewCounter(metric.ReplayTotal),
		refused:  metric.NewCounters(metric.RefusedTotal),
	}
	if to != nil {
		to.MustRegister(m.requests, m.seconds, m.inFlight, m.shed, m.replays, m.refused, usageCollector{c})
	}
	return m
}

// observe counts a request that has been answered.
func (m *metrics) observe(x *exchange, took time.Duration) {
	method := methodLabel(x.r.Method)
	m.requests.WithLabelValues(x.route, method, strconv.Itoa(x.status), x.code).Inc()
	m.seconds.WithLabelValues(x.route, method).Observe(took.Seconds())
	if x.replayed {
		m.replays.Inc()
	}
}

// usageCollector shows how much of the capacity is held.
type usageCollector struct{ capacity *capacity.Capacity }

var (
	usedDesc    = metric.NewDesc(metric.CapacityUsed)
	limitDesc   = metric.NewDesc(metric.CapacityLimit)
	waitingDesc = metric.NewDesc(metric.CapacityWaiting)
)

// Describe sends the descriptions of the metrics.
func (u usageCollector) Describe(to chan<- *prometheus.Desc) {
	to <- usedDesc
	to <- limitDesc
	to <- waitingDesc
}

// Collect sends the current values.
func (u usageCollector) Collect(to chan<- prometheus.Metric) {
	for _, part := range u.capacity.Usage() {
		to <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, float64(part.Used), part.Name)
		to <- prometheus.MustNewConstMetric(limitDesc, prometheus.GaugeValue, float64(part.Max), part.Name)
		to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(part.Waiting), part.Name)
	}
}
