package pipeline

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
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	issuerRNC = "199000013"
	buyerRNC  = "199000021"
	holder    = "00112345678"
)

// signing is an identity that every taxpayer has.
type signing struct{ id *xmlsig.Identity }

func (s signing) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return s.id, nil
}

// A town is a live pipeline, the authority it speaks to, and one clock for both.
type town struct {
	*Pipeline
	t      *testing.T
	clock  *clock
	sim    *simulator.Simulator
	client *dgii.Client
	scope  store.Scope
	made   int
}

// townOptions are what may be otherwise.
type townOptions struct {
	amb      string // ecf unless told
	receiver bool   // the buyer takes electronic documents
	seed     uint64 // of the authority; 1 unless told
	numbers  int64  // of each type; 1000 unless told
}

func newTown(t *testing.T, address string, o townOptions) *town {
	t.Helper()
	c := newClock()
	sim, err := simulator.New(simulator.Options{Now: c.now, Seed: max(o.seed, 1), Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	if o.amb == "" {
		o.amb = "ecf"
	}
	buyer := simulator.Baseline(buyerRNC, "00199000019", "2027-12-31")
	if o.receiver {
		buyer.Receiver = &simulator.Receiver{}
	}
	for _, taxpayer := range []simulator.Taxpayer{simulator.Baseline(issuerRNC, holder, "2027-12-31"), buyer} {
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
	client, err := dgii.New(dgii.Options{Hosts: hosts, Now: c.now, Roots: roots, AllowOrigin: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	id, err := sim.Identity(holder)
	if err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, clock: c, sim: sim, client: client, scope: store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}}
	s := storetest.Open(t, address, c.now)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	w.Pipeline = New(Options{
		Store: s, Env: fiscal.Production, Now: c.now, Log: log, Roots: roots,
		Plan: NewLive(LiveOptions{Store: s, Authority: client, Identities: signing{id}, Now: c.now, Log: log}),
	})
	w.prepare(id, cmp.Or(o.numbers, 1000))
	return w
}

// beside is another node on the same database, with the same signer.
func (w *town) beside() *Pipeline {
	live, ok := w.Plan.(*Live)
	if !ok {
		w.t.Fatal("the plan is not live")
	}
	o := w.Options
	o.Plan = NewLive(live.LiveOptions)
	return New(o)
}

// prepare gives the taxpayer all that it needs to issue so many of each type.
func (w *town) prepare(id *xmlsig.Identity, numbers int64) {
	w.t.Helper()
	now, ctx := w.Now(), w.t.Context()
	w.must(w.Store.Update(ctx, func(tx *store.Tx) error {
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
			s := store.Sequence{Scope: w.scope, ID: store.NewID(), Type: kind, First: 1, Last: numbers, Next: 1, CreatedAt: now}
			if kind == fiscal.FiscalCredit {
				s.Expires = expires
			}
			if err := tx.AddSequence(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (w *town) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create registers an invoice of a type and a net amount, taxed at 18 %.
func (w *town) create(kind fiscal.Type, net int) store.Invoice {
	w.t.Helper()
	return w.createOn("2026-11-14", kind, net)
}

func (w *town) createOn(day string, kind fiscal.Type, net int) store.Invoice {
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
func (w *town) register(request map[string]any) store.Invoice {
	w.t.Helper()
	w.made++
	external := fmt.Sprintf("X-%d", w.made)
	request["external_id"] = external
	body, err := json.Marshal(request)
	w.must(err)
	parsed, err := strictjson.Parse(body)
	w.must(err)
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	w.must(err)
	key := fmt.Sprintf("key-%d", w.made)
	_, err = w.Register(w.t.Context(), Command{
		Intent:  Intent{Scope: w.scope, Key: key, Fingerprint: []byte(key), RawDigest: []byte(key), RequestID: "req"},
		Invoice: inv, Request: parsed.Canonical(),
		Answer: func(store.Invoice) (string, []byte, error) { return "/", []byte(`{}`), nil },
	})
	w.must(err)
	made, err := w.Store.InvoiceByExternalID(w.t.Context(), w.scope, external)
	w.must(err)
	return made
}

// drive works off the queue and lets time pass until it is empty, or for as long
// as told.
func (w *town) drive(most time.Duration) {
	w.t.Helper()
	end := w.Now().Add(most)
	for range 10_000 {
		jobs, err := w.claim(w.t.Context(), workers)
		w.must(err)
		for _, job := range jobs {
			w.run(w.t.Context(), job)
		}
		if len(jobs) > 0 {
			continue
		}
		next, err := w.Store.NextJob(w.t.Context(), w.Env, w.Now())
		if errors.Is(err, store.ErrNotFound) || err == nil && next.After(end) {
			return
		}
		w.must(err)
		w.clock.advance(max(next.Sub(w.Now()), time.Microsecond))
	}
	w.t.Fatal("the queue does not come to an end")
}

func (w *town) read(inv store.Invoice) store.Invoice {
	w.t.Helper()
	now, err := w.Store.Invoice(w.t.Context(), w.scope, inv.ID)
	w.must(err)
	return now
}

// story is the statuses that an invoice went through.
func (w *town) story(inv store.Invoice) string {
	w.t.Helper()
	events, err := w.Store.History(w.t.Context(), w.scope, inv.ID)
	w.must(err)
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = string(e.Status)
	}
	return strings.Join(words, " ")
}

func (w *town) want(inv store.Invoice, story string) {
	w.t.Helper()
	if got := w.story(inv); got != story {
		job := ""
		if waiting, err := w.Store.Waiting(w.t.Context(), w.scope); err == nil {
			for _, one := range waiting {
				if one.Job != nil {
					job += one.ExternalID + " " + one.Job.Stage + ": " + one.Job.LastError + "\n"
				}
			}
		}
		if attempts, err := w.Store.Attempts(w.t.Context(), w.scope, inv.DocumentID); err == nil {
			job += fmt.Sprintf("%+v", attempts)
		}
		w.t.Errorf("%s: %s, want %s\n%s", inv.ExternalID, got, story, job)
	}
}

// clean asserts that the authority has nothing to complain about, and that it
// has one content under each number.
func (w *town) clean() {
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

func TestLiveDocuments(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newTown(t, address, townOptions{receiver: true})
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
