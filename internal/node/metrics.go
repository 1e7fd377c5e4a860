package node

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// registerCommits counts and times the transactions and statements of a store.
func registerCommits(to prometheus.Registerer, s *store.Store) {
	commits := metric.NewHistograms(metric.CommitTime)
	to.MustRegister(commits,
		metric.NewCounterFunc(metric.CommitTotal, func() float64 { return float64(s.WorkCount().Commits) }),
		metric.NewCounterFunc(metric.StatementTotal, func() float64 { return float64(s.WorkCount().Statements) }),
	)
	s.OnCommit(func(took time.Duration, err error) {
		outcome := "committed"
		switch {
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBroken), errors.Is(err, store.ErrOutcomeUnknown):
			outcome = "failed"
		case err != nil:
			outcome = "rolled_back"
		}
		commits.WithLabelValues(outcome).Observe(took.Seconds())
	})
}

// stageMetrics returns a function that counts and times the stages of documents, and the
// time to their verdict. Verdicts of the sandbox are synthetic and do not count.
func stageMetrics(to prometheus.Registerer, env fiscal.Environment) func(pipeline.StageResult) {
	stages, verdicts := metric.NewHistograms(metric.StageTime), metric.NewHistograms(metric.VerdictTime)
	to.MustRegister(stages)
	if env != fiscal.Sandbox {
		to.MustRegister(verdicts)
	}
	return func(r pipeline.StageResult) {
		stages.WithLabelValues(r.Stage, string(r.Outcome)).Observe(r.Took.Seconds())
		if r.Verdict() {
			verdicts.WithLabelValues(string(r.After)).Observe(r.SinceCreation().Seconds())
		}
	}
}

// exchangeMetrics returns a function that counts and times the exchanges with the
// authority and with buyers.
func exchangeMetrics(to prometheus.Registerer) func(dgii.Exchange) {
	took := metric.NewHistograms(metric.ExchangeTime)
	to.MustRegister(took)
	return func(e dgii.Exchange) {
		took.WithLabelValues(e.Service, string(e.Outcome)).Observe(e.Duration.Seconds())
	}
}

// attemptMetrics returns a function that counts and times the attempts of webhook
// deliveries. The sandbox makes none.
func attemptMetrics(to prometheus.Registerer, env fiscal.Environment) func(store.DeliveryState, time.Duration) {
	attempts := metric.NewHistograms(metric.AttemptTime)
	if env != fiscal.Sandbox {
		to.MustRegister(attempts)
	}
	results := map[store.DeliveryState]string{
		store.DeliveryDelivered: "delivered", store.DeliveryPending: "retried", store.DeliveryFailed: "failed",
	}
	return func(state store.DeliveryState, took time.Duration) {
		attempts.WithLabelValues(results[state]).Observe(took.Seconds())
	}
}

// peerMetrics returns a function that counts the demands of buyers' receivers for a
// token. The log names the receivers: a label for each would have no limit.
func peerMetrics(to prometheus.Registerer) func(dgii.PeerOutcome) {
	demands := metric.NewCounters(metric.PeerTotal)
	to.MustRegister(demands)
	return func(outcome dgii.PeerOutcome) { demands.WithLabelValues(string(outcome)).Inc() }
}

// responseMetrics returns a function that counts the commercial responses of buyers.
func responseMetrics(to prometheus.Registerer) func(inbox.ResponseOutcome) {
	responses := metric.NewCounters(metric.ResponseTotal)
	to.MustRegister(responses)
	return func(outcome inbox.ResponseOutcome) { responses.WithLabelValues(string(outcome)).Inc() }
}

// circuitCollector shows which services of the authority the node does not call.
type circuitCollector struct {
	authority *dgii.Client
	desc      *prometheus.Desc
}

func newCircuitCollector(authority *dgii.Client) circuitCollector {
	return circuitCollector{authority, metric.NewDesc(metric.CircuitOpen)}
}

// Describe sends the description of the metric.
func (c circuitCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect sends the current values.
func (c circuitCollector) Collect(to chan<- prometheus.Metric) {
	for _, circuit := range c.authority.Circuits() {
		open := 0.0
		if circuit.Open {
			open = 1
		}
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, open, circuit.Service)
	}
}
