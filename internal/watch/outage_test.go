package watch_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
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
			w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = is }))
		}
		down(true)
		var all []store.Invoice
		for range livetest.Number(t, "OUTAGE_DOCUMENTS", 4) / 2 {
			all = append(all, w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000))
		}
		if _, err := w.PDF(t.Context(), w.Read(all[0])); !errors.Is(err, pipeline.ErrNoArtifact) {
			t.Errorf("a page before anything was signed: %v", err)
		}
		for range 18 {
			w.Drive(10 * time.Minute)
			w.Clock.Advance(10 * time.Minute)
			w.Must(w.Watcher.CheckOutage(t.Context(), w.Signals()))
		}
		began, err := w.Store().Contingency(t.Context(), w.Options.Env)
		if err != nil || !began.EndedAt.IsZero() {
			t.Fatalf("contingency %+v, %v", began, err)
		}
		for _, inv := range all {
			w.Want(inv, "queued")
		}
		page, err := w.PDF(t.Context(), w.Read(all[0]))
		if err != nil || len(page.Bytes) == 0 {
			t.Errorf("no page with the legend: %v", err)
		}
		if _, err := w.Store().PrintedPage(t.Context(), w.Scope, all[0].DocumentID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the page of the contingency was kept: %v", err)
		}

		down(false)
		for range 12 {
			w.Drive(10 * time.Minute)
			w.Clock.Advance(10 * time.Minute)
			w.Must(w.Watcher.CheckOutage(t.Context(), w.Signals()))
		}
		if over, err := w.Store().Contingency(t.Context(), w.Options.Env); err != nil || over.EndedAt.IsZero() || !over.StartedAt.Equal(began.StartedAt) {
			t.Errorf("contingency %+v, %v", over, err)
		}
		for i, inv := range all {
			if i%2 == 0 {
				w.Want(inv, "queued submitted accepted")
			} else {
				w.Want(inv, "queued accepted")
			}
		}
		for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
			posts := slices.DeleteFunc(w.Asked(service), func(r simulator.RequestView) bool { return r.Status != http.StatusOK })
			if len(posts) != len(all)/2 {
				t.Errorf("%d documents got to %s, want %d", len(posts), service, len(all)/2)
			}
		}
		if final, err := w.PDF(t.Context(), w.Read(all[0])); err != nil || string(final.Bytes) == string(page.Bytes) {
			t.Errorf("the final page is that of the contingency (%v)", err)
		}
		w.Clean()
	})
}

// After an outage every document that waited has moved within 15 minutes, whatever it
// waited for and however often it was tried.
func TestEverythingMovesAfterAnOutage(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(30 * time.Second) }))
		polled := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Second)
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		lost := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
		queued := w.Create(fiscal.FiscalCredit, 1000)
		for range 6 * 8 { // eight hours
			w.Drive(10 * time.Minute)
			w.Clock.Advance(10 * time.Minute)
			w.Must(w.Watcher.CheckOutage(t.Context(), w.Signals()))
		}
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = false }))
		w.Must(w.Watcher.CheckOutage(t.Context(), w.Signals()))
		w.Drive(15 * time.Minute)
		for name, inv := range map[string]store.Invoice{"polled": polled, "lost": lost, "queued": queued} {
			if got := w.Read(inv).Status; got != fiscal.Accepted {
				t.Errorf("the document that was %s is %s: %s", name, got, w.Story(inv))
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
		w := newEnv(t, address, envOptions{Receiver: true})
		w.Rule(0, simulator.Directory, simulator.Action{Fault: "F05"})
		delivered := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(10 * time.Second)
		w.Want(delivered, "queued submitted accepted")
		for _, service := range []simulator.Service{simulator.Result, simulator.TrackIDs, simulator.StateLookup} {
			w.Rule(0, service, fault)
		}
		polled := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Second)
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()})
		lost := w.Create(fiscal.FiscalCredit, 1000)
		for range 6 * 8 {
			w.Create(fiscal.Consumer, 1000) // its service answers
			w.Drive(10 * time.Minute)
			w.Clock.Advance(10 * time.Minute)
		}
		w.Want(polled, "queued submitted")
		w.Want(lost, "queued outcome_unknown")
		w.Sim.ClearRules()
		w.Drive(15 * time.Minute)
		for name, inv := range map[string]store.Invoice{"accepted": delivered, "polled": polled, "lost": lost} {
			if got := w.Read(inv).Status; got != fiscal.Delivered {
				t.Errorf("the document that was %s is %s: %s", name, got, w.Story(inv))
			}
		}
		w.Clean()
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
				w.Must(w.Sim.Configure(func(c *simulator.Config) { c.Maintenance = true }))
				w.Create(fiscal.FiscalCredit, 1000)
				began := time.Time{}
				for start := w.Now(); began.IsZero() && w.Now().Sub(start) < 20*time.Minute; w.Clock.Advance(10 * time.Second) {
					node := all[int(w.Now().Unix()/10)%nodes]
					node.Drive(0)
					for _, n := range all {
						w.Must(n.Watcher.CheckOutage(t.Context(), w.Signals()))
					}
					if last, err := w.Store().Contingency(t.Context(), w.Options.Env); err == nil {
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
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ClockSkew = simulator.Duration(-50 * time.Second) }))
		var reachable atomic.Bool
		w.DGII.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if !reachable.Load() {
				return nil, errors.New("connection refused")
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		w = w.otherClient()
		inv := w.Create(fiscal.FiscalCredit, 1000)
		until := func(done func(store.Invoice) bool) {
			for start := w.Now(); !done(w.Read(inv)) && w.Now().Sub(start) < time.Hour; w.Clock.Advance(time.Second) {
				w.Drive(0)
				w.Must(w.Watcher.CheckOutage(t.Context(), w.Signals()))
			}
		}
		until(func(inv store.Invoice) bool { return inv.ENCF != "" })
		reachable.Store(true)
		until(func(inv store.Invoice) bool { return inv.Status.Final() })
		w.Want(inv, "queued submitted accepted")
		w.Audit()
	})
}
