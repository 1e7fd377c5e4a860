package live_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A crashEnv is what outlives a service: the authority, the clock, and a database
// with a taxpayer.
type crashEnv struct {
	clock   *storetest.Clock
	sim     *simulator.Simulator
	id      *xmlsig.Identity
	client  dgii.Options
	address string
	witness string
	store   *store.Store
	trial   trial
	scope   store.Scope
	logged  bytes.Buffer
	log     *slog.Logger
	made    int           // invoices so far
	inv     store.Invoice // the last one
}

func newCrashEnv(t *testing.T, engine string, tr trial) *crashEnv {
	t.Helper()
	c := storetest.NewClock()
	a := livetest.NewAuthority(t, c.Now, envOptions{Receiver: true})
	country := &crashEnv{
		clock: c, sim: a.Simulator, id: a.Identity, trial: tr, address: storetest.Address(t, engine), client: a.Client,
		scope: store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()},
	}
	country.log = slog.New(slog.NewTextHandler(&country.logged, nil))
	dir := quickDir(t)
	country.witness = filepath.Join(dir, "witness")
	if engine == "sqlite" {
		country.address = storetest.SQLite(t, dir)
	}
	country.store = storetest.Open(t, country.address, c.Now)
	livetest.AddIssuer(t, country.store, country.scope, a.Identity, 1000)
	return country
}

// quickDir is a folder in memory where there is one. A process that ends loses
// nothing of what its machine holds, so that no disk is needed.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "fiscalhub-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what remains ends with the machine
	return dir
}

// begin queues an invoice and sets up what goes wrong with it.
func (c *crashEnv) begin(t *testing.T) {
	t.Helper()
	c.sim.ClearRules()
	c.sim.ClearViolations()
	c.clock.Advance(time.Hour) // so that each service may get a token of its own
	w := c.service(t, c.store, &points{})
	w.Made = c.made
	c.inv = w.Create(c.trial.kind, c.trial.net)
	c.made++
	if c.trial.fault == nil {
		return
	}
	reception := simulator.Reception
	if c.trial.summary() {
		reception = simulator.RFCE
	}
	c.trial.fault(w, reception)
}

// service is a service on an open database: nothing of it is older but the rows.
func (c *crashEnv) service(t *testing.T, s *store.Store, p *points) *env {
	t.Helper()
	client, err := dgii.New(c.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	f, err := fence.Open(t.Context(), fence.Options{Store: s, Env: fiscal.Production, Path: c.witness, Now: c.clock.Now, Log: c.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close the witness: %v", err)
		}
	})
	w := &env{&livetest.Env{T: t, Clock: c.clock, Sim: c.sim, Client: client, Roots: c.client.Roots, Scope: c.scope}}
	w.Engine.Point = p.reach
	w.Options = live.Options{
		Store: s, Env: fiscal.Production, Authority: watched{client, p}, Identities: livetest.Identities{ID: c.id}, Now: c.clock.Now, Log: c.log,
		Fence: f, Point: p.reach,
	}
	w.Start()
	return w
}

// points records the points that a service reached, before and after each commit and
// each effect.
type points struct {
	mu    sync.Mutex
	names []string
	stop  func(n int)       // at the n-th
	fail  func(n int) error // at the n-th; nil: nothing fails
	bound func(context.Context) context.Context
}

func (p *points) reach(name string) error {
	p.mu.Lock()
	p.names = append(p.names, name)
	n := len(p.names)
	p.mu.Unlock()
	if p.stop != nil {
		p.stop(n)
	}
	if p.fail != nil {
		return p.fail(n)
	}
	return nil
}

// reached returns the points. A goroutine of a service that has ended may still reach one.
func (p *points) reached() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names)
}

// sent is how often a document left.
func (p *points) sent() int {
	n := 0
	for _, name := range p.reached() {
		if strings.HasPrefix(name, "before Submit") {
			n++
		}
	}
	return n
}

// watched is the authority with a point before and after each call.
type watched struct {
	*dgii.Client
	p *points
}

// call makes a call of the authority. An error before it means that nothing was sent
// (or asked), one after it that the answer is lost.
func call[T any](ctx context.Context, w watched, what string, do func(context.Context) (T, error)) (T, error) {
	var none T
	sends := strings.HasPrefix(what, "Submit")
	if err := w.p.reach("before " + what); err != nil {
		if sends {
			return none, fiscal.ErrNotReceived
		}
		return none, fiscal.ErrUnavailable
	}
	if w.p.bound != nil {
		ctx = w.p.bound(ctx)
	}
	v, err := do(ctx)
	if lost := w.p.reach("after " + what); lost != nil && err == nil {
		if sends {
			return none, fiscal.ErrInconclusive
		}
		return none, fiscal.ErrUnavailable
	}
	return v, err
}

func (w watched) Probe(ctx context.Context) error {
	_, err := call(ctx, w, "Probe", func(ctx context.Context) (struct{}, error) { return struct{}{}, w.Client.Probe(ctx) })
	return err
}

func (w watched) Reserve(ctx context.Context, id *xmlsig.Identity, rnc string, summary bool) (
	send func(context.Context, fiscal.Shipment) (fiscal.AuthorityAnswer, error), release func(), err error,
) {
	what := "Submit"
	if summary {
		what = "SubmitSummary"
	}
	inner, release, err := w.Client.Reserve(ctx, id, rnc, summary)
	return func(ctx context.Context, s fiscal.Shipment) (fiscal.AuthorityAnswer, error) {
		return call(ctx, w, what, func(ctx context.Context) (fiscal.AuthorityAnswer, error) { return inner(ctx, s) })
	}, release, err
}

func (w watched) Result(ctx context.Context, id *xmlsig.Identity, track string) (fiscal.AuthorityAnswer, error) {
	return call(ctx, w, "Result", func(ctx context.Context) (fiscal.AuthorityAnswer, error) { return w.Client.Result(ctx, id, track) })
}

func (w watched) TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error) {
	return call(ctx, w, "TrackIDs", func(ctx context.Context) ([]fiscal.AuthorityAnswer, error) { return w.Client.TrackIDs(ctx, id, q) })
}

func (w watched) State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return call(ctx, w, "State", func(ctx context.Context) (fiscal.AuthorityAnswer, error) { return w.Client.State(ctx, id, q) })
}

func (w watched) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return call(ctx, w, "SummaryState", func(ctx context.Context) (fiscal.AuthorityAnswer, error) { return w.Client.SummaryState(ctx, id, q) })
}

func (w watched) BuyerEndpoint(ctx context.Context, id *xmlsig.Identity, rnc string) (r fiscal.BuyerEndpoint, found bool, err error) {
	r, err = call(ctx, w, "Receiver", func(ctx context.Context) (fiscal.BuyerEndpoint, error) {
		r, found, err = w.Client.BuyerEndpoint(ctx, id, rnc)
		return r, err
	})
	return r, found, err
}

func (w watched) Deliver(ctx context.Context, id *xmlsig.Identity, to fiscal.BuyerEndpoint, s fiscal.Shipment) (fiscal.Acknowledgement, error) {
	return call(ctx, w, "Deliver", func(ctx context.Context) (fiscal.Acknowledgement, error) { return w.Client.Deliver(ctx, id, to, s) })
}
