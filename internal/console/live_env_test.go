package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	liveplan "github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// liveEnv is a console of production, with a simulated authority. Work
// is done when the test drives it, with the clock of the test. The tests of the console see
// its parts, so they cannot import a package that imports the console, as internal/node does.
type liveEnv struct {
	*env
	sim     *simulator.Simulator
	scope   store.Scope
	indexer *overview.Indexer
	made    int
}

const (
	liveRNC   = livetest.IssuerRNC
	liveBuyer = livetest.BuyerRNC
)

func newLiveEnv(t *testing.T, address string) *liveEnv {
	t.Helper()
	clock := storetest.NewClock()
	clock.Set(time.Now()) // as the times in ids
	authority := livetest.NewAuthority(t, clock.Now, livetest.Options{})
	w := &liveEnv{sim: authority.Simulator, scope: store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}}
	client, err := dgii.New(authority.Client)
	if err != nil {
		t.Fatal(err)
	}
	w.env = newNode(t, address, clock, seal.NewKeys(filepath.Join(t.TempDir(), "master.key")), func(o *Options) {
		o.Environment = fiscal.Production
		log := slog.New(slog.DiscardHandler)
		plan, err := liveplan.New(liveplan.Options{
			Store: o.Store, Env: o.Environment, Authority: client, Identities: livetest.Identities{ID: authority.Identity}, Now: clock.Now, Log: log,
		})
		if err == nil {
			o.Pipeline, err = pipeline.New(pipeline.Options{Store: o.Store, Plan: plan, Env: o.Environment, Now: clock.Now, Log: log})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	livetest.AddIssuer(t, w.o.Store, w.scope, authority.Identity, 1000)
	w.taxpayer = w.scope.TaxpayerID
	w.indexer, err = overview.NewIndexer(overview.IndexerOptions{Store: w.o.Store, Now: clock.Now, Log: slog.New(slog.DiscardHandler), Hurry: true})
	w.must(err)
	return w
}

// create registers an invoice of one line with a net amount, taxed at 18 %.
func (w *liveEnv) create(kind fiscal.Type, buyer string, net int) store.Invoice {
	w.t.Helper()
	w.made++
	amount := func(percent int) string { return fmt.Sprintf("%d.%02d", net*percent/100, net*percent%100) }
	external := fmt.Sprintf("VENTA-%04d", w.made)
	body, err := json.Marshal(map[string]any{
		"external_id": external, "ecf_type": kind, "issue_date": fiscal.DateOf(w.clock.Now()).String(), "currency": "DOP", "payment_type": "cash",
		"buyer": map[string]any{"legal_name": buyer, "tax_id": liveBuyer},
		"lines": []any{map[string]any{
			"line_id": "1", "description": "Servicio de mantenimiento", "item_kind": "service", "quantity": "1", "unit_price": fmt.Sprint(net), "discount": nil,
			"taxes": []any{map[string]any{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"}},
		}},
		"declared_totals": map[string]any{"subtotal": fmt.Sprint(net), "discount_total": "0", "tax_total": amount(18), "total": amount(118)},
	})
	w.must(err)
	parsed, err := strictjson.Parse(body)
	w.must(err)
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	w.must(err)
	key := fmt.Sprintf("clave-%d", w.made)
	_, err = w.o.Pipeline.Register(w.t.Context(), pipeline.Command{
		Intent:  pipeline.Intent{Scope: w.scope, Key: key, Fingerprint: []byte(key), RawDigest: []byte(key), RequestID: fmt.Sprintf("req_%d", w.made)},
		Invoice: inv, Request: parsed.Canonical(),
	})
	w.must(err)
	made, err := w.o.Store.InvoiceByExternalID(w.t.Context(), w.scope, external)
	w.must(err)
	return made
}

// work does the jobs that are due now, once.
func (w *liveEnv) work() (done int) {
	w.t.Helper()
	jobs, err := w.o.Pipeline.Claim(w.t.Context(), 32)
	w.must(err)
	for _, job := range jobs {
		w.o.Pipeline.RunJob(w.t.Context(), job)
	}
	return len(jobs)
}

// drive works and lets time pass until the queue is empty, or for as long as told. Then it
// indexes the documents.
func (w *liveEnv) drive(most time.Duration) {
	w.t.Helper()
	end := w.clock.Now().Add(most)
	for range 1000 {
		if w.work() > 0 {
			continue
		}
		next, err := w.o.Store.NextJob(w.t.Context(), w.scope.Environment, w.clock.Now())
		if errors.Is(err, store.ErrNotFound) || err == nil && next.After(end) {
			w.index()
			return
		}
		w.must(err)
		w.clock.Advance(max(next.Sub(w.clock.Now()), time.Microsecond))
	}
	w.t.Fatal("the queue does not come to an end")
}

func (w *liveEnv) index() {
	w.t.Helper()
	for more := true; more; {
		var err error
		more, err = w.indexer.Step(w.t.Context())
		w.must(err)
	}
}

func (w *liveEnv) read(inv store.Invoice) store.Invoice {
	w.t.Helper()
	now, err := w.o.Store.Invoice(w.t.Context(), w.scope, inv.ID)
	w.must(err)
	return now
}

// rule makes the authority treat the next calls of a service differently.
func (w *liveEnv) rule(count int, service simulator.Service, a simulator.Action) {
	w.t.Helper()
	_, err := w.sim.AddRule(simulator.Rule{Match: simulator.Match{Service: service}, Action: a, Count: count})
	w.must(err)
}

// judged creates a document and lets the authority judge it with a code and a message.
func (w *liveEnv) judged(verdict int, message simulator.Message, buyer string, net int) store.Invoice {
	w.t.Helper()
	w.rule(1, simulator.Reception, simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: verdict, Used: true, Messages: []simulator.Message{message}}})
	inv := w.create(fiscal.FiscalCredit, buyer, net)
	w.drive(time.Hour)
	return w.read(inv)
}

// unknown creates a document whose outcome stays unknown, because the authority drops the
// answer and does not answer questions.
func (w *liveEnv) unknown(buyer string, net int) store.Invoice {
	w.t.Helper()
	lost := false
	w.rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: &lost})
	inv := w.create(fiscal.FiscalCredit, buyer, net)
	w.work()
	w.index()
	return w.read(inv)
}

// forEachLive runs a test with an environment on every engine, in parallel with other tests.
func forEachLive(t *testing.T, test func(t *testing.T, w *liveEnv)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) { test(t, newLiveEnv(t, address)) })
}
