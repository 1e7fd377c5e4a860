package livetest

import (
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// OtherClient returns another node on the same database, with a client of its own.
func (w *Env) OtherClient() *Env {
	w.T.Helper()
	other := *w
	options := w.DGII
	var err error
	other.Client, err = dgii.New(options)
	w.Must(err)
	w.T.Cleanup(other.Client.Close)
	other.Options.Authority = other.Client
	other.Start()
	return &other
}

// OtherProvider returns an env with a database of its own, the same authority, the
// same taxpayer and the same numbers: a previous provider, or a copy of a database.
func (w *Env) OtherProvider() *Env {
	w.T.Helper()
	other := *w
	other.Options.Store = storetest.Open(w.T, storetest.Address(w.T, "sqlite"), w.Now)
	other.Made = 1000
	other.Start()
	id, err := w.Sim.Identity(Holder)
	w.Must(err)
	AddIssuer(w.T, other.Store(), w.Scope, id, 1000)
	return &other
}

// Resolver returns what records the decisions of operators.
func (w *Env) Resolver() *live.Resolver {
	return live.NewResolver(w.Store(), w.Clock.Now, w.Options.Log)
}
