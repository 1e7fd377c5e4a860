// Package livetest gives tests a pipeline with the live plan, the simulated authority and
// buyers, and one clock for all of them.
package livetest

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/watch"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Env is a live pipeline, the authority that it speaks to, and one clock for both.
type Env struct {
	*pipeline.Pipeline
	T       *testing.T
	Clock   *storetest.Clock
	Sim     *simulator.Simulator
	DGII    dgii.Options // of client
	Client  *dgii.Client
	Roots   *x509.CertPool
	Scope   store.Scope
	Made    int
	Options live.Options // of the plan
	Engine  pipeline.Options
	Plan    *live.Plan
	Inbox   *inbox.Inbox
	Watcher *watch.Watcher
}

// Options are what a test may want different.
type Options struct {
	Amb      string // default: ecf
	Receiver bool   // the buyer receives electronic documents
	Seed     uint64 // of the authority; default: 1
	Numbers  int64  // of each type; default: 1000
}

// MaxClaim is how many jobs a test claims at most.
const MaxClaim = 32

// New returns an environment on a database, with a taxpayer that can issue.
func New(t *testing.T, address string, o Options) *Env {
	t.Helper()
	c := storetest.NewClock()
	a := NewAuthority(t, c.Now, o)
	client, err := dgii.New(a.Client)
	if err != nil {
		t.Fatal(err)
	}
	w := &Env{
		T: t, Clock: c, Sim: a.Simulator, DGII: a.Client, Client: client, Roots: a.Client.Roots,
		Scope: store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()},
	}
	w.Options = live.Options{
		Store: storetest.Open(t, address, c.Now), Env: fiscal.Production, Authority: client, Identities: Identities{a.Identity}, Now: c.Now,
		Log: slog.New(slog.DiscardHandler),
	}
	w.Start()
	AddIssuer(t, w.Store(), w.Scope, a.Identity, cmp.Or(o.Numbers, 1000))
	return w
}

// Start makes the service from the env's options. Nothing of an earlier one is left
// but the rows.
func (w *Env) Start() {
	w.T.Helper()
	var err error
	w.Plan, err = live.New(w.Options)
	w.Must(err)
	w.Engine.Store, w.Engine.Env, w.Engine.Now, w.Engine.Log = w.Options.Store, w.Options.Env, w.Options.Now, w.Options.Log
	w.Watcher, err = watch.New(watch.Options{
		Store: w.Options.Store, Env: w.Options.Env, Authority: w.Client, Now: w.Options.Now, Log: w.Options.Log,
	})
	w.Must(err)
	w.Engine.Plan = w.Plan
	w.StartEngine()
}

// StartEngine makes the pipeline from the env's options.
func (w *Env) StartEngine() {
	w.T.Helper()
	var err error
	w.Pipeline, err = pipeline.New(w.Engine)
	w.Must(err)
	w.Inbox, err = inbox.New(inbox.Options{
		Store: w.Options.Store, Env: w.Options.Env, Now: w.Options.Now, Log: w.Options.Log, Settler: w.Plan, Roots: w.Roots, Publish: w.Publish,
	})
	w.Must(err)
}

// Signals returns the signals of a test that claims and notifies by itself.
func (w *Env) Signals() pipeline.Signals {
	return pipeline.Signals{Wake: func() {}, Notify: func(store.Scope) {}}
}

// Store returns the database of the service.
func (w *Env) Store() *store.Store { return w.Options.Store }

// Now returns the instant of the service's clock.
func (w *Env) Now() time.Time { return w.Options.Now() }

// OtherNode returns another node on the same database, with the same signer.
func (w *Env) OtherNode() *Env {
	w.T.Helper()
	other := *w
	other.Start()
	return &other
}

// Must ends the test with an error.
func (w *Env) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Create registers an invoice of a type and a net amount, taxed at 18 %.
func (w *Env) Create(kind fiscal.Type, net int) store.Invoice {
	w.T.Helper()
	return w.CreateOn("2026-11-14", kind, net)
}

// CreateOn is Create for an issue date.
func (w *Env) CreateOn(day string, kind fiscal.Type, net int) store.Invoice {
	w.T.Helper()
	return w.Add(map[string]any{
		"ecf_type": kind, "issue_date": day, "currency": "DOP", "payment_type": "cash",
		"buyer": map[string]any{"legal_name": "Comprador, SRL", "tax_id": BuyerRNC},
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

// Add registers an invoice as an integrator would send it, under an
// external id of its own.
func (w *Env) Add(request map[string]any) store.Invoice {
	w.T.Helper()
	w.Made++
	external := fmt.Sprintf("X-%d", w.Made)
	request["external_id"] = external
	body, err := json.Marshal(request)
	w.Must(err)
	parsed, err := strictjson.Parse(body)
	w.Must(err)
	inv, err := fiscal.New(fiscal.DecodeRegistered(parsed)) // an earlier release may have registered it
	w.Must(err)
	key := fmt.Sprintf("key-%d", w.Made)
	_, err = w.Register(w.T.Context(), pipeline.Command{
		Intent:  pipeline.Intent{Scope: w.Scope, Key: key, Fingerprint: []byte(key), RawDigest: []byte(key), RequestID: "req"},
		Invoice: inv, Request: parsed.Canonical(),
	})
	w.Must(err)
	made, err := w.Store().InvoiceByExternalID(w.T.Context(), w.Scope, external)
	w.Must(err)
	return made
}

// Drive works off the queue and lets time pass until the queue is empty, or for a span.
func (w *Env) Drive(most time.Duration) {
	w.T.Helper()
	end := w.Now().Add(most)
	for range 10_000 {
		jobs, err := w.Claim(w.T.Context(), MaxClaim)
		if errors.Is(err, store.ErrUnavailable) {
			continue // as the runner does
		}
		w.Must(err)
		for _, job := range jobs {
			w.RunJob(w.T.Context(), job)
		}
		if len(jobs) > 0 {
			continue
		}
		next, err := w.Store().NextJob(w.T.Context(), w.Options.Env, w.Now())
		if errors.Is(err, store.ErrNotFound) || err == nil && next.After(end) {
			return
		}
		w.Must(err)
		w.Clock.Advance(max(next.Sub(w.Now()), time.Microsecond))
	}
	w.T.Fatal("the queue does not come to an end")
}

// Read returns an invoice as it is in the database.
func (w *Env) Read(inv store.Invoice) store.Invoice {
	w.T.Helper()
	now, err := w.Store().Invoice(w.T.Context(), w.Scope, inv.ID)
	w.Must(err)
	return now
}

// Story is the statuses that an invoice went through.
func (w *Env) Story(inv store.Invoice) string {
	w.T.Helper()
	events, err := w.Store().History(w.T.Context(), w.Scope, inv.ID)
	w.Must(err)
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = string(e.Status)
	}
	return strings.Join(words, " ")
}

// Want asserts the story of an invoice.
func (w *Env) Want(inv store.Invoice, story string) {
	w.T.Helper()
	if got := w.Story(inv); got != story {
		job := ""
		if waiting, err := w.Store().WaitingDocuments(w.T.Context(), w.Scope); err == nil {
			for _, one := range waiting {
				if one.Job != nil {
					job += one.ExternalID + " " + one.Job.Stage + ": " + one.Job.Cause.String() + "\n"
				}
			}
		}
		if attempts, err := w.Store().Attempts(w.T.Context(), w.Scope, inv.DocumentID); err == nil {
			job += fmt.Sprintf("%+v", attempts)
		}
		w.T.Errorf("%s: %s, want %s\n%s", inv.ExternalID, got, story, job)
	}
}

// Clean asserts that the authority has nothing to complain about, and that it
// has one content under each number.
func (w *Env) Clean() {
	w.T.Helper()
	for _, v := range w.Sim.Violations() {
		w.T.Errorf("violation: %+v", v)
	}
	contents := map[string]string{}
	for _, d := range w.Sim.Documents(simulator.Filter{}) {
		key := d.RNC + " " + d.ENCF
		if other, seen := contents[key]; seen && other != d.SHA256 {
			w.T.Errorf("two contents under %s", key)
		}
		contents[key] = d.SHA256
	}
	w.Audit()
}

// Codes returns the codes of problems.
func Codes(problems fiscal.Problems) []string {
	all := []string{}
	for _, p := range problems {
		all = append(all, p.Code)
	}
	return all
}

// Rule lets a service of the authority act so often as an action says; 0 means always.
func (w *Env) Rule(count int, service simulator.Service, a simulator.Action) {
	w.T.Helper()
	_, err := w.Sim.AddRule(simulator.Rule{Match: simulator.Match{Service: service}, Action: a, Count: count})
	w.Must(err)
}

// Verdict is an answer of the authority: a code, whether the number is used, and a message.
func Verdict(code int, used bool, message string) simulator.Action {
	return simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: code, Used: used, Messages: []simulator.Message{{Code: 176, Text: message}}}}
}

// No is false, for an action that does not keep what it got.
func No() *bool { stored := false; return &stored }

// Asked are the requests that a service of the authority got, as they came.
func (w *Env) Asked(service simulator.Service) []simulator.RequestView {
	all := slices.DeleteFunc(w.Sim.Requests(), func(r simulator.RequestView) bool { return r.Service != service })
	slices.SortFunc(all, func(a, b simulator.RequestView) int { return int(a.Seq) - int(b.Seq) })
	return all
}

// Bytes returns the bytes of a signed document.
func (w *Env) Bytes(inv store.Invoice) string {
	w.T.Helper()
	issued, err := w.Store().IssuedDocument(w.T.Context(), w.Scope, inv.DocumentID)
	w.Must(err)
	return string(issued.XML)
}

// A WatchedAuthority calls Asked before each question for a verdict.
type WatchedAuthority struct {
	live.Authority
	Asked func()
}

// Result calls Asked and then the authority.
func (a WatchedAuthority) Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.AuthorityAnswer, error) {
	a.Asked()
	return a.Authority.Result(ctx, id, trackID)
}

// Contents returns how many different documents the authority has under a number.
func (w *Env) Contents(encf string) int {
	seen := map[string]bool{}
	for _, d := range w.Sim.Documents(simulator.Filter{}) {
		if d.ENCF == encf {
			seen[d.SHA256] = true
		}
	}
	return len(seen)
}

// Number returns the number in an environment variable, or fallback.
func Number(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// ReadEvidence reads the evidence of a document.
func ReadEvidence(ctx context.Context, s *store.Store, scope store.Scope, documentID string) ([]evidence.Item, error) {
	stored, err := s.EvidenceOf(ctx, scope, documentID)
	if err != nil {
		return nil, err
	}
	return pipeline.DecodeEvidence(stored)
}
