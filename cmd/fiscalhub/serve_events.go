package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// events sends events to integrators, by feed and by webhook, and knows the
// sources that may send events to the service.
type events struct {
	env       fiscal.Environment
	endpoints *notify.Endpoints
	sources   *notify.Sources
	feed      *notify.Feed
	sender    *notify.Sender
	poster    *webhook.Sender
}

// newEvents builds the feed and the sender of webhooks. The caller closes it.
func (c serveCmd) newEvents(env fiscal.Environment, baseURL string, s *store.Store, keys *seal.Keys, registry prometheus.Registerer, tracer *trace.Tracer, log *slog.Logger) (*events, error) {
	if c.WebhookAllowPrivate {
		log.Warn("Webhooks may go to private addresses (--webhook-allow-private). Any user who can create an endpoint can make this machine call any address.")
	}
	guard, err := c.guard()
	if err != nil {
		return nil, err
	}
	poster, err := webhook.New(webhook.Options{Now: s.Now, Guard: guard})
	if err != nil {
		return nil, err
	}
	secrets := access.NewSecrets(s, keys)
	e := &events{env: env, poster: poster, feed: notify.NewFeed(s)}
	e.sources, err = notify.NewSources(notify.SourcesOptions{Store: s, Secrets: secrets, Now: s.Now})
	if err == nil {
		e.sender, err = notify.NewSender(notify.SenderOptions{
			Store: s, Secrets: secrets, Poster: poster, Env: env, Now: s.Now, Log: log, Pace: wake.Pace(c.Pace), BaseURL: baseURL, OnCommit: e.committed,
			OnAttempt: attemptMetrics(registry, env), Tracer: tracer,
		})
	}
	if err == nil {
		e.endpoints, err = notify.NewEndpoints(notify.EndpointsOptions{
			Store: s, Secrets: secrets, Poster: poster, Guard: guard, Now: s.Now, WakeSender: e.sender.Wake,
		})
	}
	if err != nil {
		poster.Close()
		return nil, err
	}
	return e, nil
}

// committed wakes the feed and the sender after events of a taxpayer were committed.
func (e *events) committed(scope store.Scope) {
	e.feed.Wake(scope)
	e.sender.Wake()
}

// run sends webhooks until ctx ends. The sandbox emits no events.
func (e *events) run(ctx context.Context) {
	if e.env != fiscal.Sandbox {
		e.sender.Run(ctx)
	}
}

func (e *events) close() { e.poster.Close() }
