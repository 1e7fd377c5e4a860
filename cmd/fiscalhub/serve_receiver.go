package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// receiverParts are the parts of the process that the receiver needs.
type receiverParts struct {
	env      fiscal.Environment
	store    *store.Store
	ring     *access.Keyring
	runtime  *envRuntime
	api      *api.API
	capacity *capacity.Capacity
	clients  *capacity.ClientFinder
	log      *slog.Logger
}

// newReceiver builds the services under /fe/ that other taxpayers call. The
// sandbox has none of them.
func newReceiver(p receiverParts) (*receiver.Receiver, error) {
	o := receiver.Options{Environment: p.env, Now: p.store.Now, Log: p.log, Capacity: p.capacity, Clients: p.clients}
	if p.env != fiscal.Sandbox {
		r := p.runtime
		o.Roots, o.Keys, o.Seeds, o.Taxpayers, o.Identities = r.roots, p.ring.Receivers, p.store, recipients{p.store, p.env}, r.certificates
		o.Responses, o.Limit, o.LimitCaller = r.inbox, p.api.Admit, p.api.AdmitCaller
		o.OnWrongToken, o.OnWrongSeed = p.api.RefuseToken, p.api.RefuseSeed
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
