package live_test

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
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// kindsSince counts the events after the first n, by kind.
func (w *env) kindsSince(n int) map[string]int {
	counts := map[string]int{}
	for _, e := range w.Feed()[n:] {
		counts[e.Type]++
	}
	return counts
}

// A contingency that is interrupted anywhere begins once and ends once, with one event
// each, and every document that waited goes on.
func TestContingencySurvivesEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		down := func(is bool) { w.Must(e.sim.Configure(func(c *simulator.Config) { c.Maintenance = is })) }
		events := len(w.Feed())
		began := e.clock.Now()
		down(true)
		made := []store.Invoice{w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000)}
		over := false
		return round{
			step: func(w *flowService) (bool, error) {
				w.Drive(5 * time.Minute)
				if !over {
					e.clock.Advance(5 * time.Minute)
				}
				if err := w.watcher.CheckOutage(w.T.Context(), w.Signals()); err != nil {
					return false, err
				}
				last, err := e.store.Contingency(w.T.Context(), w.Options.Env)
				if err != nil || last.StartedAt.Before(began) {
					return false, nil // it has not begun
				}
				if !over {
					over = true
					down(false)
					return false, nil
				}
				w.Drive(time.Hour)
				return !last.EndedAt.IsZero() && w.Read(made[0]).Status.Final() && w.Read(made[1]).Status.Final(), err
			},
			check: func(w *flowService) {
				got := w.kindsSince(events)
				want := map[string]int{
					event.ContingencyStarted: 1, event.ContingencyEnded: 1, "fiscal_document.submitted": 1, "fiscal_document.accepted": 2, "fiscal_document.artifacts_ready": 2,
				}
				if diff := cmp.Diff(want, got); diff != "" {
					w.T.Errorf("events (-want +got):\n%s", diff)
				}
				w.Want(made[0], "queued submitted accepted")
				w.Want(made[1], "queued accepted")
			},
		}
	}}.everyPoint(t)
}

// A warning that is interrupted anywhere is sent once.
func TestWarningsSurviveEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		events := len(w.Feed())
		var made []string
		for range 2 {
			id := store.NewID()
			made = append(made, id)
			c := store.Credential{
				ID: id, Prefix: "p" + id[len(id)-12:], Environment: w.Options.Env, TaxpayerID: w.Scope.TaxpayerID,
				Digest: []byte{1}, PepperVersion: 1, CreatedAt: w.Now(), ExpiresAt: w.Now().Add(20 * 24 * time.Hour),
			}
			w.Must(e.store.Update(w.T.Context(), func(tx *store.Tx) error { return tx.CreateCredential(w.T.Context(), c) }))
		}
		return round{
			step: func(w *flowService) (bool, error) {
				return true, w.watcher.Warn(w.T.Context(), w.Signals())
			},
			check: func(w *flowService) {
				w.Must(w.watcher.Warn(w.T.Context(), w.Signals()))
				if diff := cmp.Diff(map[string]int{event.CredentialExpiring: 2}, w.kindsSince(events)); diff != "" {
					w.T.Errorf("events (-want +got):\n%s", diff)
				}
				for _, id := range made { // a taxpayer has a limited number of them
					w.Must(e.store.Update(w.T.Context(), func(tx *store.Tx) error { return tx.RevokeCredential(w.T.Context(), id, w.Now()) }))
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
		ranges, err := e.store.NumberRangesOf(w.T.Context(), w.Scope, fiscal.FiscalCredit)
		w.Must(err)
		next := ranges[0].Next
		sent, err := fiscal.NewENCF(fiscal.FiscalCredit, next+2)
		w.Must(err)
		// Another database has sent three numbers that this one does not know.
		w.Must(w.Options.Fence.BeforeSend(w.T.Context(), store.Issued{Scope: w.Scope, RNC: livetest.IssuerRNC, ENCF: sent.String(), NumberRangeID: ranges[0].ID}))
		w.Refused(fiscal.FiscalCredit)
		return round{
			step: func(w *flowService) (bool, error) {
				_, err := w.releaser.Release(w.T.Context(), w.Scope)
				return true, err
			},
			check: func(w *flowService) {
				w.Equal("fenced after the release", []string{}, w.Fenced())
				inv := w.Create(fiscal.FiscalCredit, 1000)
				e.made = w.Made
				w.Drive(time.Hour)
				if got, want := w.Read(inv), fmt.Sprintf("E31%010d", next+3); got.ENCF != want || got.Status != fiscal.Accepted {
					w.T.Errorf("the next document has %s and is %s, want %s", got.ENCF, got.Status, want)
				}
				w.Ledger()
			},
		}
	}}.everyPoint(t)
}

// source returns a source that passes on the messages of buyers, and creates it on the
// first call.
func (e *flowEnv) source(w *flowService) store.Source {
	w.T.Helper()
	all, err := e.store.Sources(w.T.Context())
	w.Must(err)
	if len(all) > 0 {
		return all[0]
	}
	s := store.Source{Scope: w.Scope, ID: store.NewID(), Kinds: []string{event.InboundReceipt, event.InboundCommercial}, Secret: store.SealedSecret{Sealed: []byte("elsewhere"), Version: 1}}
	w.Must(e.store.Update(w.T.Context(), func(tx *store.Tx) error { return tx.CreateSource(w.T.Context(), s) }))
	return s
}

// acknowledgement is the buyer's signed acknowledgement of a number.
func (w *env) acknowledgement(encf string) []byte {
	w.T.Helper()
	return w.ReceiptOf(w.T, encf, livetest.BuyerRNC)
}

// wantEffectsOnce asserts that a document has one receipt and so many commercial responses, each
// with one event, and a history without gaps.
func (e *flowEnv) wantEffectsOnce(w *flowService, inv store.Invoice, events, responses int) {
	w.T.Helper()
	want := map[string]int{"fiscal_document.delivered": 1}
	if responses > 0 {
		want[event.CommercialResponse], want[event.CommercialResponseUnconfirmed] = responses, responses
	}
	got := w.kindsSince(events)
	for _, kind := range []string{"fiscal_document.submitted", "fiscal_document.accepted", "fiscal_document.artifacts_ready"} {
		delete(got, kind) // of a document that was made meanwhile
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.T.Errorf("events (-want +got):\n%s", diff)
	}
	known, err := livetest.ReadEvidence(w.T.Context(), e.store, w.Scope, inv.DocumentID)
	w.Must(err)
	for kind, n := range map[evidence.Kind]int{evidence.Receipt: 1, evidence.Commercial: responses} {
		if has := len(slices.DeleteFunc(slices.Clone(known), func(i evidence.Item) bool { return i.Kind != kind })); has != n {
			w.T.Errorf("%d items of evidence of the kind %s, want %d", has, kind, n)
		}
	}
	if got := w.Read(inv); got.Status != fiscal.Delivered {
		w.T.Errorf("the document is %s, want delivered", got.Status)
	}
	w.Audit()
}

// A buyer's receipt and response that are interrupted anywhere and sent again have their
// effect once. So has the confirmation of the signer.
func TestInboundMessagesSurviveEveryPoint(t *testing.T) {
	t.Parallel()
	flow{begin: func(e *flowEnv, w *flowService) round {
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		inv = w.Read(inv)
		events, source := len(w.Feed()), e.source(w)
		receipt, response := w.acknowledgement(inv.ENCF), w.Respond(inv, nil)
		again, err := reply.ReadResponse(response, w.Roots, w.Now())
		w.Must(err)
		signer := store.BuyerSigner{Scope: w.Scope, BuyerRNC: livetest.BuyerRNC, Signer: livetest.BuyerSigner, CreatedAt: w.Now()}
		err = e.store.Update(w.T.Context(), func(tx *store.Tx) error { return tx.RemoveBuyerSigner(w.T.Context(), signer) })
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			w.T.Fatal(err)
		}
		return round{
			step: func(w *flowService) (bool, error) {
				ctx := w.T.Context()
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
		ranges, err := e.store.NumberRangesOf(w.T.Context(), w.Scope, fiscal.FiscalCredit)
		w.Must(err)
		encf, err := fiscal.NewENCF(fiscal.FiscalCredit, ranges[0].Next)
		w.Must(err)
		events, source, receipt := len(w.Feed()), e.source(w), w.acknowledgement(encf.String())
		var inv store.Invoice
		return round{
			step: func(w *flowService) (bool, error) {
				if inv.ID == "" {
					in := inbox.Message{Source: source, MessageID: encf.String(), Kind: event.InboundReceipt, ENCF: encf.String(), XML: receipt}
					if _, err := w.inbox.Receive(w.T.Context(), in); err != nil {
						return false, err
					}
					inv = w.Create(fiscal.FiscalCredit, 1000)
					w.Drive(time.Hour)
				}
				return true, w.inbox.ApplyParked(w.T.Context())
			},
			check: func(w *flowService) {
				e.wantEffectsOnce(w, inv, events, 0)
				left, err := e.store.ParkedWithDocument(w.T.Context(), w.Options.Env, store.Parked{}, w.Now(), 10)
				if err != nil || len(left) > 0 {
					w.T.Errorf("still parked: %d messages, %v", len(left), err)
				}
			},
		}
	}}.everyPoint(t)
}
