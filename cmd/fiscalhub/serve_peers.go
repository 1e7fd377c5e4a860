package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/buyer"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
)

// peerFlag is the flag about the receivers of buyers.
type peerFlag struct {
	PeerAuthentication string `help:"When the service authenticates to the receivers of buyers, that is, signs a seed of theirs: on-demand (after a receiver has refused a delivery without a token) or never." enum:"on-demand,never" default:"on-demand"`
}

// neverAuthenticates reports whether the service authenticates to no receiver.
func (f peerFlag) neverAuthenticates() bool { return f.PeerAuthentication == "never" }

// peerMetrics returns a function that counts the demands of buyers' receivers for a
// token. The log names the receivers: a label for each would have no limit.
func peerMetrics(to prometheus.Registerer) func(dgii.PeerOutcome) {
	demands := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fiscalhub_peer_authentications_total",
		Help: "Demands of buyers' receivers for a token, by outcome. For token and no_token the service signed a seed of the receiver.",
	}, []string{"outcome"})
	to.MustRegister(demands)
	for _, outcome := range []dgii.PeerOutcome{dgii.PeerToken, dgii.PeerNoToken, dgii.PeerNotSigned} {
		demands.WithLabelValues(string(outcome))
	}
	return func(outcome dgii.PeerOutcome) { demands.WithLabelValues(string(outcome)).Inc() }
}

// responseMetrics returns a function that counts the commercial responses of buyers.
func responseMetrics(to prometheus.Registerer) func(buyer.Outcome) {
	responses := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fiscalhub_commercial_responses_total",
		Help: "Commercial responses to documents of ours, by outcome.",
	}, []string{"outcome"})
	to.MustRegister(responses)
	for _, outcome := range buyer.Outcomes() {
		responses.WithLabelValues(string(outcome))
	}
	return func(outcome buyer.Outcome) { responses.WithLabelValues(string(outcome)).Inc() }
}
