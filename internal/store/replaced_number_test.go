package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addIssued adds a document with a number and an attempt to send it.
func addIssued(t *testing.T, s *store.Store, numbers store.NumberRange, encf string) store.Issued {
	t.Helper()
	inv := addInvoice(t, s, numbers.Scope, encf)
	issued := store.Issued{
		Scope: inv.Scope, RNC: "199000013", ENCF: encf, DocumentID: inv.DocumentID, NumberRangeID: numbers.ID, Certificate: "c", SecurityCode: "AbC123",
		State: store.NumberIssued, SignedAt: noon, CreatedAt: noon, XMLDigest: []byte{1}, SentDigest: []byte(encf), XML: []byte("<x/>"), Summary: []byte("<y/>"), Summarized: true,
	}
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Issue(ctx, issued); err != nil {
			return err
		}
		return tx.Do(ctx, new(store.Batch).OpenAttempt(store.Attempt{Scope: inv.Scope, DocumentID: inv.DocumentID, Number: 1, Kind: "submit", Digest: issued.SentDigest, OpenedAt: noon}))
	})
	return issued
}

func TestAReplacedNumberIsKeptAndNeverIssuedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, numbers := t.Context(), addNumberRange(t, s)
		old := addIssued(t, s, numbers, "E320000000001")
		other := addIssued(t, s, numbers, "E320000000002")
		replaced := store.ReplacedNumber{Issued: old, Reason: "the range has ended", By: "ana", At: noon}
		replace := func() error {
			return s.Update(ctx, func(tx *store.Tx) error { return tx.ReplaceNumber(ctx, replaced) })
		}
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if err := replace(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("replaced twice: %v", err)
		}
		if _, err := s.IssuedDocument(ctx, old.Scope, old.DocumentID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the document still has its number: %v", err)
		}
		inv, err := s.InvoiceOfDocument(ctx, old.Scope, old.DocumentID)
		if err != nil || inv.ENCF != "" {
			t.Errorf("the invoice shows %q, %v", inv.ENCF, err)
		}
		got, err := s.ReplacedNumbers(ctx, old.Scope, old.DocumentID)
		want := replaced
		if diff := cmp.Diff([]store.ReplacedNumber{want}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		abandoned, err := s.AbandonedNumbers(ctx, old.Scope, old.RNC, "E320000000001", "E320000000009")
		if err != nil || len(abandoned) != 1 || abandoned[0].ENCF != old.ENCF || abandoned[0].Presence != store.NumberAbsent {
			t.Errorf("abandoned: %+v, %v", abandoned, err)
		}
		if err := s.Update(ctx, func(tx *store.Tx) error { return tx.Issue(ctx, old) }); err == nil {
			t.Error("the old number was issued again")
		}
		next := old
		next.ENCF, next.SentDigest = "E320000000003", []byte("other")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Issue(ctx, next) })
		attempts, err := s.Attempts(ctx, old.Scope, old.DocumentID)
		if err != nil || len(attempts) != 1 || !attempts[0].Replaced {
			t.Errorf("attempts: %+v, %v", attempts, err)
		}
		if highest, err := s.HighestSent(ctx, old.Environment, old.RNC, "E320000000001", "E320000000009"); err != nil || highest != other.ENCF {
			t.Errorf("the highest number that was sent is %s, %v", highest, err)
		}
	})
}

// What was signed stays as it was, and a number is replaced once.
func TestAReplacedNumberNeverChanges(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, numbers := t.Context(), addNumberRange(t, s)
		old := addIssued(t, s, numbers, "E320000000001")
		addIssued(t, s, numbers, "E320000000002")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.ReplaceNumber(ctx, store.ReplacedNumber{Issued: old, Reason: "r", By: "ana", At: noon})
		})
		for _, statement := range []string{
			`DELETE FROM issued_documents`, `UPDATE issued_documents SET replaced_reason = 'x'`, `UPDATE issued_documents SET document_id = 'x' WHERE former_document_id IS NULL`,
			`UPDATE issued_documents SET former_document_id = NULL WHERE former_document_id IS NOT NULL`,
			`UPDATE issued_documents SET document_id = former_document_id, former_document_id = NULL WHERE former_document_id IS NOT NULL`,
			`UPDATE issued_documents SET document_id = 'x', former_document_id = document_id WHERE former_document_id IS NOT NULL`,
			`UPDATE issued_documents SET document_id = 'x', former_document_id = 'y' WHERE former_document_id IS NULL`,
			`UPDATE issued_documents SET document_id = 'x', former_document_id = document_id, xml = xml_sha256 WHERE former_document_id IS NULL`,
		} {
			if err := s.Update(ctx, func(tx *store.Tx) error { return tx.Exec(ctx, statement) }); err == nil {
				t.Errorf("allowed: %s", statement)
			}
		}
	})
}
