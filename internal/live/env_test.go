package live

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/watch"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	issuerRNC = "199000013"
	buyerRNC  = "199000021"
	holder    = "00112345678"
	// buyerSigner signs for the buyer.
	buyerSigner = "00199000019"
)

// signing is an identity that every taxpayer has.
type signing struct{ id *xmlsig.Identity }

func (s signing) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return s.id, nil
}

// env is a live pipeline, the authority that it speaks to, and one clock for both.
type env struct {
	*pipeline.Pipeline
	t       *testing.T
	clock   *storetest.Clock
	sim     *simulator.Simulator
	dgii    dgii.Options // of client
	client  *dgii.Client
	roots   *x509.CertPool
	scope   store.Scope
	made    int
	options Options // of the plan
	engine  pipeline.Options
	plan    *Plan
	inbox   *inbox.Inbox
	watcher *watch.Watcher
}

// envOptions are what a test may want different.
type envOptions struct {
	amb      string // default: ecf
	receiver bool   // the buyer receives electronic documents
	seed     uint64 // of the authority; default: 1
	numbers  int64  // of each type; default: 1000
}

// maxClaim is how many jobs a test claims at most.
const maxClaim = 32

func newEnv(t *testing.T, address string, o envOptions) *env {
	t.Helper()
	c := storetest.NewClock()
	sim, err := simulator.New(simulator.Options{Now: c.Now, Seed: max(o.seed, 1), Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	if o.amb == "" {
		o.amb = "ecf"
	}
	receiver := simulator.Baseline(buyerRNC, buyerSigner, "2027-12-31")
	if o.receiver {
		receiver.Receiver = &simulator.Receiver{}
	}
	for _, taxpayer := range []simulator.Taxpayer{simulator.Baseline(issuerRNC, holder, "2027-12-31"), receiver} {
		if err := sim.AddTaxpayer(taxpayer); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(sim.RootsPEM())
	hosts, err := dgii.SimulatorHosts(server.URL, o.amb)
	if err != nil {
		t.Fatal(err)
	}
	authority := dgii.Options{Hosts: hosts, Now: c.Now, Roots: roots, AllowOrigin: server.URL}
	client, err := dgii.New(authority)
	if err != nil {
		t.Fatal(err)
	}
	id, err := sim.Identity(holder)
	if err != nil {
		t.Fatal(err)
	}
	w := &env{t: t, clock: c, sim: sim, dgii: authority, client: client, roots: roots, scope: store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}}
	w.options = Options{
		Store: storetest.Open(t, address, c.Now), Env: fiscal.Production, Authority: client, Identities: signing{id}, Now: c.Now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	w.start()
	w.prepare(id, cmp.Or(o.numbers, 1000))
	return w
}

// start makes the service from the env's options. Nothing of an earlier one is left
// but the rows.
func (w *env) start() {
	w.t.Helper()
	var err error
	w.plan, err = New(w.options)
	w.must(err)
	w.engine.Store, w.engine.Env, w.engine.Now, w.engine.Log = w.options.Store, w.options.Env, w.options.Now, w.options.Log
	w.watcher, err = watch.New(watch.Options{
		Store: w.options.Store, Env: w.options.Env, Authority: w.client, Now: w.options.Now, Log: w.options.Log,
	})
	w.must(err)
	w.engine.Plan = w.plan
	w.startEngine()
}

// startEngine makes the pipeline from the env's options.
func (w *env) startEngine() {
	w.t.Helper()
	var err error
	w.Pipeline, err = pipeline.New(w.engine)
	w.must(err)
	w.inbox, err = inbox.New(inbox.Options{
		Store: w.options.Store, Env: w.options.Env, Now: w.options.Now, Log: w.options.Log, Settler: w.plan, Roots: w.roots, Publish: w.Publish,
	})
	w.must(err)
}

// signals are those of a test that claims and notifies by itself.
func (w *env) signals() pipeline.Signals {
	return pipeline.Signals{Wake: func() {}, Notify: func(store.Scope) {}}
}

// store returns the database of the service.
func (w *env) store() *store.Store { return w.options.Store }

// now returns the instant of the service's clock.
func (w *env) now() time.Time { return w.options.Now() }

// otherNode returns another node on the same database, with the same signer.
func (w *env) otherNode() *env {
	w.t.Helper()
	other := *w
	other.start()
	return &other
}

// prepare gives the taxpayer all that it needs to issue so many of each type.
func (w *env) prepare(id *xmlsig.Identity, numbers int64) {
	w.t.Helper()
	now, ctx := w.now(), w.t.Context()
	w.must(w.store().Update(ctx, func(tx *store.Tx) error {
		err := tx.CreateTaxpayer(ctx, store.Taxpayer{
			ID: w.scope.TaxpayerID, RNC: issuerRNC, LegalName: "Prueba, SRL", Address: "Calle 1", Phones: []string{}, IncomeType: "01", CreatedAt: now, UpdatedAt: now,
		})
		if err != nil {
			return err
		}
		_, err = tx.AddCertificate(ctx, store.Certificate{
			Scope: w.scope, ID: store.NewID(), DER: id.Certificate.Raw, Sealed: []byte("elsewhere"),
			NotBefore: id.Certificate.NotBefore, NotAfter: id.Certificate.NotAfter, CreatedAt: now,
		})
		if err != nil {
			return err
		}
		expires, err := fiscal.ParseDate("2027-12-31")
		if err != nil {
			return err
		}
		for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
			s := store.NumberRange{Scope: w.scope, ID: store.NewID(), Type: kind, First: 1, Last: numbers, Next: 1, CreatedAt: now}
			if kind == fiscal.FiscalCredit {
				s.Expires = expires
			}
			if err := tx.AddNumberRange(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (w *env) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create registers an invoice of a type and a net amount, taxed at 18 %.
func (w *env) create(kind fiscal.Type, net int) store.Invoice {
	w.t.Helper()
	return w.createOn("2026-11-14", kind, net)
}

func (w *env) createOn(day string, kind fiscal.Type, net int) store.Invoice {
	w.t.Helper()
	return w.register(map[string]any{
		"ecf_type": kind, "issue_date": day, "currency": "DOP", "payment_type": "cash",
		"buyer": map[string]any{"legal_name": "Comprador, SRL", "tax_id": buyerRNC},
		"lines": []any{map[string]any{
			"line_id": "1", "description": "Cosa", "item_kind": "product", "quantity": "1", "unit_price": fmt.Sprint(net), "discount": nil,
			"taxes": []any{map[string]any{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"}},
		}},
		"declared_totals": map[string]any{
			"subtotal": fmt.Sprint(net), "discount_total": "0",
			"tax_total": fmt.Sprintf("%d.%02d", net*18/100, net*18%100), "total": fmt.Sprintf("%d.%02d", net*118/100, net*118%100),
		},
	})
}

// register registers an invoice as an integrator would send it, under an
// external id of its own.
func (w *env) register(request map[string]any) store.Invoice {
	w.t.Helper()
	w.made++
	external := fmt.Sprintf("X-%d", w.made)
	request["external_id"] = external
	body, err := json.Marshal(request)
	w.must(err)
	parsed, err := strictjson.Parse(body)
	w.must(err)
	inv, err := fiscal.New(fiscal.DecodeRegistered(parsed)) // an earlier release may have registered it
	w.must(err)
	key := fmt.Sprintf("key-%d", w.made)
	_, err = w.Register(w.t.Context(), pipeline.Command{
		Intent:  pipeline.Intent{Scope: w.scope, Key: key, Fingerprint: []byte(key), RawDigest: []byte(key), RequestID: "req"},
		Invoice: inv, Request: parsed.Canonical(),
	})
	w.must(err)
	made, err := w.store().InvoiceByExternalID(w.t.Context(), w.scope, external)
	w.must(err)
	return made
}

// drive works off the queue and lets time pass until it is empty, or for as long
// as told.
func (w *env) drive(most time.Duration) {
	w.t.Helper()
	end := w.now().Add(most)
	for range 10_000 {
		jobs, err := w.Claim(w.t.Context(), maxClaim)
		if errors.Is(err, store.ErrUnavailable) {
			continue // as the runner does
		}
		w.must(err)
		for _, job := range jobs {
			w.RunJob(w.t.Context(), job)
		}
		if len(jobs) > 0 {
			continue
		}
		next, err := w.store().NextJob(w.t.Context(), w.options.Env, w.now())
		if errors.Is(err, store.ErrNotFound) || err == nil && next.After(end) {
			return
		}
		w.must(err)
		w.clock.Advance(max(next.Sub(w.now()), time.Microsecond))
	}
	w.t.Fatal("the queue does not come to an end")
}

func (w *env) read(inv store.Invoice) store.Invoice {
	w.t.Helper()
	now, err := w.store().Invoice(w.t.Context(), w.scope, inv.ID)
	w.must(err)
	return now
}

// story is the statuses that an invoice went through.
func (w *env) story(inv store.Invoice) string {
	w.t.Helper()
	events, err := w.store().History(w.t.Context(), w.scope, inv.ID)
	w.must(err)
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = string(e.Status)
	}
	return strings.Join(words, " ")
}

func (w *env) want(inv store.Invoice, story string) {
	w.t.Helper()
	if got := w.story(inv); got != story {
		job := ""
		if waiting, err := w.store().WaitingDocuments(w.t.Context(), w.scope); err == nil {
			for _, one := range waiting {
				if one.Job != nil {
					job += one.ExternalID + " " + one.Job.Stage + ": " + one.Job.LastError + "\n"
				}
			}
		}
		if attempts, err := w.store().Attempts(w.t.Context(), w.scope, inv.DocumentID); err == nil {
			job += fmt.Sprintf("%+v", attempts)
		}
		w.t.Errorf("%s: %s, want %s\n%s", inv.ExternalID, got, story, job)
	}
}

// clean asserts that the authority has nothing to complain about, and that it
// has one content under each number.
func (w *env) clean() {
	w.t.Helper()
	for _, v := range w.sim.Violations() {
		w.t.Errorf("violation: %+v", v)
	}
	contents := map[string]string{}
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		key := d.RNC + " " + d.ENCF
		if other, seen := contents[key]; seen && other != d.SHA256 {
			w.t.Errorf("two contents under %s", key)
		}
		contents[key] = d.SHA256
	}
	w.audit()
}

func TestLiveDocumentsReachAVerdict(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		credit, small, large := w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 1000), w.create(fiscal.Consumer, 300_000)
		w.drive(time.Hour)
		w.want(credit, "queued submitted accepted delivered")
		w.want(small, "queued accepted")
		w.want(large, "queued submitted accepted")
		if got := w.read(credit); got.ENCF != "E310000000001" || got.TrackID == "" {
			t.Errorf("31: %+v", got)
		}
		if got := w.read(small); got.ENCF != "E320000000001" || got.TrackID != "" {
			t.Errorf("small 32: %+v", got)
		}
		if got := w.read(large); got.ENCF != "E320000000002" || got.TrackID == "" {
			t.Errorf("large 32: %+v", got)
		}
		w.clean()
	})
}

// codes returns the codes of problems.
func codes(problems fiscal.Problems) []string {
	all := []string{}
	for _, p := range problems {
		all = append(all, p.Code)
	}
	return all
}
