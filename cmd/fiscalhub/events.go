package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// events is what tells integrators of what happens, and who may tell us.
type events struct {
	env       fiscal.Environment
	endpoints *notify.Endpoints
	sources   *notify.Sources
	feed      *notify.Feed
	sender    *notify.Sender
	poster    *webhook.Sender
}

// events makes what tells integrators. It is for the caller to close.
func (c serveCmd) events(env fiscal.Environment, baseURL string, s *store.Store, keys *seal.Keys, log *slog.Logger) (*events, error) {
	if c.WebhookAllowPrivate {
		log.Warn("Webhooks may go to private addresses (--webhook-allow-private). Whoever can create an endpoint can make this machine call any address.")
	}
	guard, err := c.guard()
	if err != nil {
		return nil, err
	}
	poster, err := webhook.New(webhook.Options{Now: time.Now, Guard: guard})
	if err != nil {
		return nil, err
	}
	secrets := access.NewSecrets(s, keys)
	e := &events{env: env, poster: poster, feed: notify.NewFeed(s)}
	e.sources, err = notify.NewSources(notify.SourcesOptions{Store: s, Secrets: secrets, Now: time.Now})
	if err == nil {
		e.sender, err = notify.NewSender(notify.Options{
			Store: s, Secrets: secrets, Poster: poster, Env: env, Now: time.Now, Log: log, Pace: wake.Pace(c.Pace), BaseURL: baseURL, OnCommit: e.committed,
		})
	}
	if err == nil {
		e.endpoints, err = notify.NewEndpoints(notify.EndpointsOptions{
			Store: s, Secrets: secrets, Poster: poster, Guard: guard, Now: time.Now, WakeSender: e.sender.Wake,
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

// run sends until ctx ends. The sandbox emits no events.
func (e *events) run(ctx context.Context) {
	if e.env != fiscal.Sandbox {
		e.sender.Run(ctx)
	}
}

func (e *events) close() { e.poster.Close() }

// newReceiver makes the services that other taxpayers and the authority call. In
// the sandbox there are none.
func newReceiver(env fiscal.Environment, s *store.Store, ring *access.Keyring, r envRuntime, a *api.API, log *slog.Logger) (*receiver.Receiver, error) {
	o := receiver.Options{Environment: env, Now: time.Now, Log: log}
	if env != fiscal.Sandbox {
		o.Roots, o.Key, o.Seeds, o.Taxpayers, o.Identities = r.roots, ring.Receiver(), s, recipients{s, env}, r.identities
		o.Responses, o.Limit = r.inbox, a.Admit
	}
	return receiver.New(o)
}

// recipients are the taxpayers of an environment, by their RNC.
type recipients struct {
	store *store.Store
	env   fiscal.Environment
}

// ByRNC finds who receives for an RNC.
func (r recipients) ByRNC(ctx context.Context, rnc string) (store.Scope, bool, error) {
	found, err := r.store.TaxpayerByRNC(ctx, r.env, rnc)
	if errors.Is(err, store.ErrNotFound) {
		return store.Scope{}, false, nil
	}
	return store.Scope{Environment: r.env, TaxpayerID: found.ID}, err == nil, err
}
