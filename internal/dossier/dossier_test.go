package dossier_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// noon is when the document of the tests is created.
var noon = time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)

// register creates a taxpayer with an endpoint and one document.
func register(t *testing.T, s *store.Store) store.Invoice {
	t.Helper()
	ctx, scope := t.Context(), store.Scope{Environment: fiscal.Production, TaxpayerID: store.NewID()}
	inv := store.Invoice{
		Scope: scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: "EXT-1", Type: fiscal.FiscalCredit, Status: fiscal.Queued, Revision: 1,
		Currency: "DOP", IssueDate: "2026-11-14", Total: "118.00", DocumentTotal: "118.00", CreatedAt: noon, UpdatedAt: noon,
	}
	must(t, s.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(
			tx.CreateTaxpayer(ctx, store.Taxpayer{ID: scope.TaxpayerID, RNC: "199000102", LegalName: "Demo, SRL", CreatedAt: noon}),
			tx.CreateEndpoint(ctx, store.Endpoint{Scope: scope, ID: store.NewID(), URL: "https://shop.example/hook", Kinds: []string{"*"}, Concurrency: 1, CreatedAt: noon, UpdatedAt: noon}))
	}))
	_, err := s.Register(ctx, store.Registration{
		Invoice: inv, Request: []byte(`{}`),
		Job:   &store.Job{Scope: scope, DocumentID: inv.DocumentID, Plan: pipeline.LivePlan, Stage: "issue", RunAt: noon, CreatedAt: noon},
		Reply: store.StoredReply{Scope: scope, Operation: "create_invoice", Key: "k", Fingerprint: []byte{1}, RawDigest: []byte{1}, ObjectID: inv.ID, HTTPStatus: 202, CreatedAt: noon, Body: []byte("{}")},
		Entry: store.HistoryEntry{Scope: scope, InvoiceID: inv.ID, ID: store.NewID(), At: noon, Kind: "created", Status: inv.Status, Cause: cause.New(cause.Registered)},
	})
	must(t, err)
	return inv
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send gives the document a number, sends it, and judges it, all in one millisecond.
func send(t *testing.T, s *store.Store, inv store.Invoice) {
	t.Helper()
	ctx := t.Context()
	at := func(micros int) time.Time { return noon.Add(time.Second + time.Duration(micros)*time.Microsecond) }
	numbers := store.NumberRange{Scope: inv.Scope, ID: store.NewID(), Type: inv.Type, First: 1, Last: 9, Next: 2, CreatedAt: noon}
	issued := store.Issued{
		Scope: inv.Scope, RNC: "199000102", ENCF: "E310000000001", DocumentID: inv.DocumentID, NumberRangeID: numbers.ID, SecurityCode: "AbC123",
		SignedAt: noon, CreatedAt: at(9), XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte("<x/>"),
	}
	found := pipeline.Finding{Item: evidence.Item{Kind: evidence.Verdict, TrackID: "t", Verdict: fiscal.VerdictAccepted, At: at(7)}}
	row, err := found.Row(inv.Scope, inv.DocumentID)
	must(t, err)
	must(t, s.Update(ctx, func(tx *store.Tx) error {
		if err := errors.Join(tx.AddNumberRange(ctx, numbers), tx.Issue(ctx, issued)); err != nil {
			return err
		}
		after := inv
		after.ENCF, after.Status, after.Revision, after.UpdatedAt = issued.ENCF, fiscal.Accepted, 2, at(0)
		rows := new(store.Batch).ShowNumber(issued).OpenAttempt(store.Attempt{
			Scope: inv.Scope, DocumentID: inv.DocumentID, Number: 1, Kind: "submit", Digest: []byte{2}, OpenedAt: at(8),
		}).AddEvidence(row).AddUnconfirmedResponse(store.UnconfirmedResponse{
			Scope: inv.Scope, DocumentID: inv.DocumentID, Number: 1, BuyerRNC: "131", Signer: "001", At: at(6000), XML: []byte("<r/>"),
		}).AddHistoryEntry(store.HistoryEntry{
			Scope: inv.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: at(0), Kind: "status_changed", Status: fiscal.Accepted, Cause: cause.New(cause.Verdict),
		}).AddEvent(store.Event{
			Scope: inv.Scope, ID: store.NewID(), Kind: "fiscal_document.accepted", DocumentID: inv.DocumentID, Revision: 2, At: at(0), Body: []byte("{}"),
		})
		return errors.Join(tx.Do(ctx, rows), tx.SaveDifference(ctx, store.Difference{
			Scope: inv.Scope, DocumentID: inv.DocumentID, Kind: store.DifferenceTotal, Ours: "118.00", Theirs: "1.00", FoundAt: at(9000), SeenAt: at(9000), CheckAt: at(9000),
		}))
	}))
}

// names returns what happened, in short.
func names(all []dossier.Entry) (list []string) {
	for _, e := range all {
		name := string(e.Status) + ": "
		switch what := e.What.(type) {
		case store.HistoryEntry:
			name += what.Kind
		case store.Issued:
			name += what.ENCF
		case store.Attempt:
			name += what.Kind
		case evidence.Item:
			name += string(what.Kind)
		case store.UnconfirmedResponse:
			name += "response of " + what.Signer
		case store.Difference:
			name += what.Cause().String()
		}
		list = append(list, name)
	}
	return list
}

func TestDossierHasEverythingInOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		inv := register(t, s)
		d, err := dossier.Read(t.Context(), s, inv.Scope, inv.DocumentID)
		must(t, err)
		if d.Issued != nil || d.Shown() != nil || d.Outcome() != nil || d.Job == nil || len(d.Deliveries) != 0 {
			t.Errorf("a document without a number: %+v", d)
		}
		send(t, s, inv)
		d, err = dossier.Read(t.Context(), s, inv.Scope, inv.DocumentID)
		must(t, err)
		// In one millisecond the cause comes before its effect.
		want := []string{
			"queued: created", "queued: E310000000001", "queued: submit", "queued: verdict", "accepted: status_changed",
			"accepted: response of 001", "accepted: the tax authority shows the total 1.00 instead of 118.00",
		}
		if diff := cmp.Diff(want, names(d.Entries())); diff != "" {
			t.Error(diff)
		}
		if d.Shown() == nil || d.Outcome().Status != fiscal.Accepted {
			t.Errorf("the outcome is %+v", d.Outcome())
		}
		if len(d.Deliveries) != 1 || d.Deliveries[0].URL != "https://shop.example/hook" || d.Deliveries[0].Tries() != 0 || d.Deliveries[0].Last != nil {
			t.Errorf("the deliveries are %+v", d.Deliveries)
		}
		d.Invoice.ENCF = "" // a failover could still take the number back
		if slices.Contains(names(d.Entries()), want[1]) {
			t.Error("a number is shown that nobody may see yet")
		}
	})
}

// A number that the document had before is part of what happened.
func TestDossierHasReplacedNumbers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		inv := register(t, s)
		send(t, s, inv)
		must(t, s.Update(t.Context(), func(tx *store.Tx) error {
			issued, err := tx.IssuedDocument(t.Context(), inv.Scope, inv.DocumentID)
			if err != nil {
				return err
			}
			return tx.ReplaceNumber(t.Context(), store.ReplacedNumber{Issued: issued, Reason: "it ended", By: "ana", At: noon.Add(time.Hour)})
		}))
		d, err := dossier.Read(t.Context(), s, inv.Scope, inv.DocumentID)
		must(t, err)
		if len(d.Replaced) != 1 || d.Issued != nil || !slices.Contains(names(d.Entries()), "queued: E310000000001") {
			t.Errorf("after a replacement: %v", names(d.Entries()))
		}
	})
}

func TestDossierOfAnotherTaxpayerIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		inv := register(t, s)
		other := store.Scope{Environment: inv.Environment, TaxpayerID: store.NewID()}
		for _, scope := range []store.Scope{other, {Environment: fiscal.Certification, TaxpayerID: inv.TaxpayerID}} {
			if _, err := dossier.Read(t.Context(), s, scope, inv.DocumentID); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the document is found in %+v: %v", scope, err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := dossier.Read(ended, s, inv.Scope, inv.DocumentID); err == nil {
			t.Error("a read that was cancelled has no error")
		}
	})
}
