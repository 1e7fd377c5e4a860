package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/capacity"
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
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fiscalhub_http_requests_total", Help: "Requests answered, by route, method, status and error code.",
		}, []string{"route", "method", "status", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fiscalhub_http_request_seconds", Help: "Time from the first byte of a request to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fiscalhub_http_requests_in_flight", Help: "Requests being answered now.",
		}),
		shed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fiscalhub_http_shed_total", Help: "Requests refused because the service, the strangers, an address, a credential or a taxpayer had no capacity left.",
		}, []string{"bound"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fiscalhub_idempotent_replays_total", Help: "Creations answered with the stored answer of an earlier request.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fiscalhub_authentication_failures_total", Help: "Requests whose credential was refused, by reason.",
		}, []string{"reason"}),
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
	usedDesc    = prometheus.NewDesc("fiscalhub_capacity_used", "What requests and connections hold now, by part of the capacity.", []string{"part"}, nil)
	limitDesc   = prometheus.NewDesc("fiscalhub_capacity_limit", "The most that requests and connections may hold, by part of the capacity.", []string{"part"}, nil)
	waitingDesc = prometheus.NewDesc("fiscalhub_capacity_waiting", "Requests that wait, by part of the capacity.", []string{"part"}, nil)
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
