package live

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// kindsSince counts the events after the first n, by kind.
func (w *env) kindsSince(n int) map[string]int {
	counts := map[string]int{}
	for _, e := range w.feed()[n:] {
		counts[e.Type]++
	}
	return counts
}

// A contingency that is interrupted anywhere begins once and ends once, with one event
// each, and every document that waited goes on.
func TestContingencySurvivesEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		down := func(is bool) { w.must(e.sim.Configure(func(c *simulator.Config) { c.Maintenance = is })) }
		events := len(w.feed())
		began := e.clock.Now()
		down(true)
		made := []store.Invoice{w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 1000)}
		over := false
		return round{
			step: func(w *flowService) (bool, error) {
				w.drive(5 * time.Minute)
				if !over {
					e.clock.Advance(5 * time.Minute)
				}
				if err := w.watcher.CheckOutage(w.t.Context(), w.signals()); err != nil {
					return false, err
				}
				last, err := e.store.Contingency(w.t.Context(), w.options.Env)
				if err != nil || last.StartedAt.Before(began) {
					return false, nil // it has not begun
				}
				if !over {
					over = true
					down(false)
					return false, nil
				}
				w.drive(time.Hour)
				return !last.EndedAt.IsZero() && w.read(made[0]).Status.Final() && w.read(made[1]).Status.Final(), err
			},
			check: func(w *flowService) {
				got := w.kindsSince(events)
				want := map[string]int{
					event.ContingencyStarted: 1, event.ContingencyEnded: 1, "fiscal_document.submitted": 1, "fiscal_document.accepted": 2, "fiscal_document.artifacts_ready": 2,
				}
				if diff := cmp.Diff(want, got); diff != "" {
					w.t.Errorf("events (-want +got):\n%s", diff)
				}
				w.want(made[0], "queued submitted accepted")
				w.want(made[1], "queued accepted")
			},
		}
	}}.everyPoint(t)
}

// A warning that is interrupted anywhere is sent once.
func TestWarningsSurviveEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		events := len(w.feed())
		var made []string
		for range 2 {
			id := store.NewID()
			made = append(made, id)
			c := store.Credential{
				ID: id, Prefix: "p" + id[len(id)-12:], Environment: w.options.Env, TaxpayerID: w.scope.TaxpayerID,
				Digest: []byte{1}, PepperVersion: 1, CreatedAt: w.now(), ExpiresAt: w.now().Add(20 * 24 * time.Hour),
			}
			w.must(e.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(w.t.Context(), c) }))
		}
		return round{
			step: func(w *flowService) (bool, error) {
				return true, w.watcher.Warn(w.t.Context(), w.signals())
			},
			check: func(w *flowService) {
				w.must(w.watcher.Warn(w.t.Context(), w.signals()))
				if diff := cmp.Diff(map[string]int{event.CredentialExpiring: 2}, w.kindsSince(events)); diff != "" {
					w.t.Errorf("events (-want +got):\n%s", diff)
				}
				for _, id := range made { // a taxpayer has a limited number of them
					w.must(e.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.RevokeCredential(w.t.Context(), id, w.now()) }))
				}
			},
		}
	}}.everyPoint(t)
}

// A release that is interrupted anywhere and done again gives up the same numbers, each
// once, and the range goes on after them.
func TestReleaseSurvivesEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		ranges, err := e.store.NumberRangesOf(w.t.Context(), w.scope, fiscal.FiscalCredit)
		w.must(err)
		next := ranges[0].Next
		sent, err := fiscal.NewENCF(fiscal.FiscalCredit, next+2)
		w.must(err)
		// Another database has sent three numbers that this one does not know.
		w.must(w.options.Fence.BeforeSend(w.t.Context(), store.Issued{Scope: w.scope, RNC: issuerRNC, ENCF: sent.String(), NumberRangeID: ranges[0].ID}))
		w.refused(fiscal.FiscalCredit)
		return round{
			step: func(w *flowService) (bool, error) {
				_, err := w.releaser.Release(w.t.Context(), w.scope)
				return true, err
			},
			check: func(w *flowService) {
				w.equal("fenced after the release", []string{}, w.fenced())
				inv := w.create(fiscal.FiscalCredit, 1000)
				e.made = w.made
				w.drive(time.Hour)
				if got, want := w.read(inv), fmt.Sprintf("E31%010d", next+3); got.ENCF != want || got.Status != fiscal.Accepted {
					w.t.Errorf("the next document has %s and is %s, want %s", got.ENCF, got.Status, want)
				}
				w.ledger()
			},
		}
	}}.everyPoint(t)
}

// source returns a source that passes on the messages of buyers, and creates it on the
// first call.
func (e *flowEnv) source(w *flowService) store.Source {
	w.t.Helper()
	all, err := e.store.Sources(w.t.Context())
	w.must(err)
	if len(all) > 0 {
		return all[0]
	}
	s := store.Source{Scope: w.scope, ID: store.NewID(), Kinds: []string{event.InboundReceipt, event.InboundCommercial}, Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
	w.must(e.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.CreateSource(w.t.Context(), s) }))
	return s
}

// acknowledgement is the buyer's signed acknowledgement of a number.
func (w *env) acknowledgement(encf string) []byte {
	w.t.Helper()
	return w.receiptOf(w.t, encf, buyerRNC)
}

// wantEffectsOnce asserts that a document has one receipt and so many commercial responses, each
// with one event, and a history without gaps.
func (e *flowEnv) wantEffectsOnce(w *flowService, inv store.Invoice, events, responses int) {
	w.t.Helper()
	want := map[string]int{"fiscal_document.delivered": 1}
	if responses > 0 {
		want[event.CommercialResponse], want[event.CommercialResponseUnconfirmed] = responses, responses
	}
	got := w.kindsSince(events)
	for _, kind := range []string{"fiscal_document.submitted", "fiscal_document.accepted", "fiscal_document.artifacts_ready"} {
		delete(got, kind) // of a document that was made meanwhile
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
	known, err := ReadEvidence(w.t.Context(), e.store, w.scope, inv.DocumentID)
	w.must(err)
	for kind, n := range map[evidence.Kind]int{evidence.Receipt: 1, evidence.Commercial: responses} {
		if has := len(slices.DeleteFunc(slices.Clone(known), func(i evidence.Item) bool { return i.Kind != kind })); has != n {
			w.t.Errorf("%d items of evidence of the kind %s, want %d", has, kind, n)
		}
	}
	if got := w.read(inv); got.Status != fiscal.Delivered {
		w.t.Errorf("the document is %s, want delivered", got.Status)
	}
	w.audit()
}

// A buyer's receipt and response that are interrupted anywhere and sent again have their
// effect once. So has the confirmation of the signer.
func TestInboundMessagesSurviveEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		inv := w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		inv = w.read(inv)
		events, source := len(w.feed()), e.source(w)
		receipt, response := w.acknowledgement(inv.ENCF), w.respond(inv, nil)
		again, err := reply.ReadResponse(response, w.roots, w.now())
		w.must(err)
		signer := store.BuyerSigner{Scope: w.scope, BuyerRNC: buyerRNC, Signer: buyerSigner, CreatedAt: w.now()}
		err = e.store.Update(w.t.Context(), func(tx *store.Tx) error { return tx.RemoveBuyerSigner(w.t.Context(), signer) })
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			w.t.Fatal(err)
		}
		return round{
			step: func(w *flowService) (bool, error) {
				ctx := w.t.Context()
				for i, in := range []inbox.Message{{Kind: event.InboundReceipt, XML: receipt}, {Kind: event.InboundCommercial, XML: response}} {
					in.Source, in.ENCF, in.MessageID = source, inv.ENCF, fmt.Sprintf("%s-%d", inv.ID, i)
					if _, err := w.inbox.Receive(ctx, in); err != nil {
						return false, err
					}
				}
				if err := w.inbox.Commercial(ctx, again); err != nil { // the buyer also calls us itself
					return false, err
				}
				if err := e.counted.Update(ctx, func(tx *store.Tx) error { return tx.ConfirmBuyerSigner(ctx, signer) }); err != nil {
					return false, err
				}
				_, err := w.inbox.ApplyConfirmed(ctx)
				return true, err
			},
			check: func(w *flowService) { e.wantEffectsOnce(w, inv, events, 1) },
		}
	}}.everyPoint(t)
}

// A message that comes before its document waits, and is applied once, wherever it is
// interrupted.
func TestParkedMessagesSurviveEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		ranges, err := e.store.NumberRangesOf(w.t.Context(), w.scope, fiscal.FiscalCredit)
		w.must(err)
		encf, err := fiscal.NewENCF(fiscal.FiscalCredit, ranges[0].Next)
		w.must(err)
		events, source, receipt := len(w.feed()), e.source(w), w.acknowledgement(encf.String())
		var inv store.Invoice
		return round{
			step: func(w *flowService) (bool, error) {
				if inv.ID == "" {
					in := inbox.Message{Source: source, MessageID: encf.String(), Kind: event.InboundReceipt, ENCF: encf.String(), XML: receipt}
					if _, err := w.inbox.Receive(w.t.Context(), in); err != nil {
						return false, err
					}
					inv = w.create(fiscal.FiscalCredit, 1000)
					w.drive(time.Hour)
				}
				return true, w.inbox.ApplyParked(w.t.Context())
			},
			check: func(w *flowService) {
				e.wantEffectsOnce(w, inv, events, 0)
				left, err := e.store.ParkedWithDocument(w.t.Context(), w.options.Env, store.Parked{}, w.now(), 10)
				if err != nil || len(left) > 0 {
					w.t.Errorf("still parked: %d messages, %v", len(left), err)
				}
			},
		}
	}}.everyPoint(t)
}
