package live

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The authority is down for three hours. Creations go on, signed
// documents wait, and all of them go out when it is back, once.
// OUTAGE_DOCUMENTS says how many; the scenario has 200.
func TestContingencyDuringAnOutage(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		down := func(is bool) {
			w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = is }))
		}
		down(true)
		var all []store.Invoice
		for range number(t, "OUTAGE_DOCUMENTS", 4) / 2 {
			all = append(all, w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 1000))
		}
		if _, err := w.PDF(t.Context(), w.read(all[0])); !errors.Is(err, pipeline.ErrNoArtifact) {
			t.Errorf("a page before anything was signed: %v", err)
		}
		for range 18 {
			w.drive(10 * time.Minute)
			w.clock.Advance(10 * time.Minute)
			w.must(w.watcher.CheckOutage(t.Context(), w.signals()))
		}
		began, err := w.store().Contingency(t.Context(), w.options.Env)
		if err != nil || !began.EndedAt.IsZero() {
			t.Fatalf("contingency %+v, %v", began, err)
		}
		for _, inv := range all {
			w.want(inv, "queued")
		}
		page, err := w.PDF(t.Context(), w.read(all[0]))
		if err != nil || len(page.Bytes) == 0 {
			t.Errorf("no page with the legend: %v", err)
		}
		if _, err := w.store().PrintedPage(t.Context(), w.scope, all[0].DocumentID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the page of the contingency was kept: %v", err)
		}

		down(false)
		for range 12 {
			w.drive(10 * time.Minute)
			w.clock.Advance(10 * time.Minute)
			w.must(w.watcher.CheckOutage(t.Context(), w.signals()))
		}
		if over, err := w.store().Contingency(t.Context(), w.options.Env); err != nil || over.EndedAt.IsZero() || !over.StartedAt.Equal(began.StartedAt) {
			t.Errorf("contingency %+v, %v", over, err)
		}
		for i, inv := range all {
			if i%2 == 0 {
				w.want(inv, "queued submitted accepted")
			} else {
				w.want(inv, "queued accepted")
			}
		}
		for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
			posts := slices.DeleteFunc(w.asked(service), func(r simulator.RequestView) bool { return r.Status != http.StatusOK })
			if len(posts) != len(all)/2 {
				t.Errorf("%d documents got to %s, want %d", len(posts), service, len(all)/2)
			}
		}
		if final, err := w.PDF(t.Context(), w.read(all[0])); err != nil || string(final.Bytes) == string(page.Bytes) {
			t.Errorf("the final page is that of the contingency (%v)", err)
		}
		w.clean()
	})
}

// After an outage every document that waited has moved within 15 minutes, whatever it
// waited for and however often it was tried.
func TestEverythingMovesAfterAnOutage(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.must(w.sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(30 * time.Second) }))
		polled := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Second)
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		lost := w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
		queued := w.create(fiscal.FiscalCredit, 1000)
		for range 6 * 8 { // eight hours
			w.drive(10 * time.Minute)
			w.clock.Advance(10 * time.Minute)
			w.must(w.watcher.CheckOutage(t.Context(), w.signals()))
		}
		w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = false }))
		w.must(w.watcher.CheckOutage(t.Context(), w.signals()))
		w.drive(15 * time.Minute)
		for name, inv := range map[string]store.Invoice{"polled": polled, "lost": lost, "queued": queued} {
			if got := w.read(inv).Status; got != fiscal.Accepted {
				t.Errorf("the document that was %s is %s: %s", name, got, w.story(inv))
			}
		}
	})
}

// Some services of the authority are down for eight hours, or give no answer that can be
// used, while another one answers. What waited for them has moved within 15 minutes of their
// first answer.
func TestEverythingMovesAfterAnOutageOfSomeServices(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]simulator.Action{
		"503": {Fault: "F05"}, "429": {Fault: "F10"}, "401": {Fault: "F09"}, "empty object": {Fault: "F06", Variant: "empty-object"}, "400": {Fault: "F08"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outageOfSomeServices(t, fault)
		})
	}
}

func outageOfSomeServices(t *testing.T, fault simulator.Action) {
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		w.rule(0, simulator.Directory, simulator.Action{Fault: "F05"})
		delivered := w.create(fiscal.FiscalCredit, 1000)
		w.drive(10 * time.Second)
		w.want(delivered, "queued submitted accepted")
		for _, service := range []simulator.Service{simulator.Result, simulator.TrackIDs, simulator.StateLookup} {
			w.rule(0, service, fault)
		}
		polled := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Second)
		w.rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: no()})
		lost := w.create(fiscal.FiscalCredit, 1000)
		for range 6 * 8 {
			w.create(fiscal.Consumer, 1000) // its service answers
			w.drive(10 * time.Minute)
			w.clock.Advance(10 * time.Minute)
		}
		w.want(polled, "queued submitted")
		w.want(lost, "queued outcome_unknown")
		w.sim.ClearRules()
		w.drive(15 * time.Minute)
		for name, inv := range map[string]store.Invoice{"accepted": delivered, "polled": polled, "lost": lost} {
			if got := w.read(inv).Status; got != fiscal.Delivered {
				t.Errorf("the document that was %s is %s: %s", name, got, w.story(inv))
			}
		}
		w.clean()
	})
}

// A single document meets an outage, and most of the time nothing is called. The
// contingency begins all the same after ten minutes without an answer, on one node and on
// several that share the few calls.
func TestContingencyBeginsWithLittleTraffic(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]int{"one node": 1, "three nodes": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				w := newEnv(t, address, envOptions{})
				all := []*env{w}
				for range nodes - 1 {
					all = append(all, w.otherClient())
				}
				w.must(w.sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
				w.create(fiscal.FiscalCredit, 1000)
				began := time.Time{}
				for start := w.now(); began.IsZero() && w.now().Sub(start) < 20*time.Minute; w.clock.Advance(10 * time.Second) {
					node := all[int(w.now().Unix()/10)%nodes]
					node.drive(0)
					for _, n := range all {
						w.must(n.watcher.CheckOutage(t.Context(), w.signals()))
					}
					if last, err := w.store().Contingency(t.Context(), w.options.Env); err == nil {
						began = last.StartedAt
						if after := began.Sub(start); after < 10*time.Minute || after > 12*time.Minute {
							t.Errorf("the contingency began after %s, want about ten minutes", after)
						}
					}
				}
				if began.IsZero() {
					t.Error("no contingency began in 20 minutes without an answer")
				}
			})
		})
	}
}

// The authority's clock is behind, and no answer of it has shown this yet: a document that
// is signed during the contingency is from the authority's future. It is sent when the
// authority's clock has come to its signature, and is not rejected.
func TestADocumentFromTheAuthoritysFutureWaits(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.must(w.sim.Configure(func(c *simulator.Config) { c.ClockSkew = simulator.Duration(-50 * time.Second) }))
		var reachable atomic.Bool
		w.dgii.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !reachable.Load() {
				return nil, errors.New("connection refused")
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		w = w.otherClient()
		inv := w.create(fiscal.FiscalCredit, 1000)
		until := func(done func(store.Invoice) bool) {
			for start := w.now(); !done(w.read(inv)) && w.now().Sub(start) < time.Hour; w.clock.Advance(time.Second) {
				w.drive(0)
				w.must(w.watcher.CheckOutage(t.Context(), w.signals()))
			}
		}
		until(func(inv store.Invoice) bool { return inv.ENCF != "" })
		reachable.Store(true)
		until(func(inv store.Invoice) bool { return inv.Status.Final() })
		w.want(inv, "queued submitted accepted")
		w.audit()
	})
}

// otherClient returns another node on the same database, with a client of its own.
func (w *env) otherClient() *env {
	w.t.Helper()
	other := *w
	options := w.dgii
	var err error
	other.client, err = dgii.New(options)
	w.must(err)
	w.t.Cleanup(other.client.Close)
	other.options.Authority = other.client
	other.start()
	return &other
}
