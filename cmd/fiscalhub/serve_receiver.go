package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// newReceiver builds the services under /fe/ that other taxpayers call. The
// sandbox has none of them.
func newReceiver(env fiscal.Environment, s *store.Store, ring *access.Keyring, r *envRuntime, a *api.API, log *slog.Logger) (*receiver.Receiver, error) {
	o := receiver.Options{Environment: env, Now: s.Now, Log: log}
	if env != fiscal.Sandbox {
		o.Roots, o.Keys, o.Seeds, o.Taxpayers, o.Identities = r.roots, ring.Receivers, s, recipients{s, env}, r.certificates
		o.Responses, o.Limit = r.inbox, a.Admit
	}
	return receiver.New(o)
}

// recipients finds the taxpayers of an environment by RNC.
type recipients struct {
	store *store.Store
	env   fiscal.Environment
}

// ByRNC returns the scope of the taxpayer with an RNC, and false when there is
// none.
func (r recipients) ByRNC(ctx context.Context, rnc string) (store.Scope, bool, error) {
	found, err := r.store.TaxpayerByRNC(ctx, r.env, rnc)
	if errors.Is(err, store.ErrNotFound) {
		return store.Scope{}, false, nil
	}
	return store.Scope{Environment: r.env, TaxpayerID: found.ID}, err == nil, err
}
