package main

import (
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/metric"
	"github.com/fiscalhub/fiscalhub/internal/monitor"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// newRegistry returns the registry of the metrics, with those of the program and of the
// database.
func newRegistry(env fiscal.Environment, s *store.Store, log *slog.Logger) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	figures, err := monitor.New(monitor.Options{Store: s, Env: env, Now: s.Now, Log: log})
	if err != nil {
		return nil, err
	}
	build := metric.NewGauges(metric.BuildInfo)
	build.WithLabelValues(version, revision(), runtime.Version(), string(env), s.Engine()).Set(1)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build, figures)
	s.OnCommit(commitMetrics(registry))
	registry.MustRegister(
		metric.NewCounterFunc(metric.CommitTotal, func() float64 { return float64(s.WorkCount().Commits) }),
		metric.NewCounterFunc(metric.StatementTotal, func() float64 { return float64(s.WorkCount().Statements) }),
	)
	return registry, nil
}

// commitMetrics returns a function that counts and times transactions.
func commitMetrics(to prometheus.Registerer) func(time.Duration, error) {
	commits := metric.NewHistograms(metric.CommitTime)
	to.MustRegister(commits)
	return func(took time.Duration, err error) {
		outcome := "committed"
		switch {
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBroken), errors.Is(err, store.ErrOutcomeUnknown):
			outcome = "failed"
		case err != nil:
			outcome = "rolled_back"
		}
		commits.WithLabelValues(outcome).Observe(took.Seconds())
	}
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
