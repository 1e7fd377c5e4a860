package store_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addIssued adds a document with a number and an attempt to send it.
func addIssued(t *testing.T, s *store.Store, numbers store.NumberRange, encf string) store.Issued {
	t.Helper()
	inv := addInvoice(t, s, numbers.Scope, encf)
	issued := store.Issued{
		Scope: inv.Scope, RNC: "199000013", ENCF: encf, InvoiceID: inv.ID, DocumentID: inv.DocumentID, NumberRangeID: numbers.ID, Certificate: "c", SecurityCode: "AbC123",
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
		want.InvoiceID = ""
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

// What was signed stays as it was, and no row of issued disappears unless it is kept.
func TestReplacedNumbersAreAppendOnly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx, numbers := t.Context(), addNumberRange(t, s)
		old := addIssued(t, s, numbers, "E320000000001")
		addIssued(t, s, numbers, "E320000000002")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.ReplaceNumber(ctx, store.ReplacedNumber{Issued: old, Reason: "r", By: "ana", At: noon})
		})
		const columns = `environment, rnc, encf, taxpayer_id, document_id, sequence_id, certificate, security_code, buyer_rnc, signed_at, created_at, xml_sha256, sent_sha256`
		for _, statement := range []string{
			`UPDATE reissued SET reason = 'x'`, `DELETE FROM reissued`, `DELETE FROM issued`,
			`INSERT INTO reissued (` + columns + `, xml, reason, replaced_by, replaced_at) SELECT ` + columns + `, xml_sha256, '', '', 0 FROM issued`,
			`INSERT INTO reissued (` + columns + `, xml, reason, replaced_by, replaced_at) SELECT environment, rnc, 'E320000000009', taxpayer_id, document_id, sequence_id, certificate, security_code, buyer_rnc, signed_at, created_at, xml_sha256, sent_sha256, xml, '', '', 0 FROM issued`,
		} {
			if err := s.Update(ctx, func(tx *store.Tx) error { return tx.Exec(ctx, statement) }); err == nil {
				t.Errorf("allowed: %s", statement)
			}
		}
	})
}

// The service may not delete rows of issued, and replaces a number all the same.
func TestTheServiceReplacesANumber(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	owner := storetest.Open(t, address, func() time.Time { return noon })
	old := addIssued(t, owner, addNumberRange(t, owner), "E320000000001")
	s, err := store.Open(t.Context(), storetest.As(address, storetest.Service), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.ReplaceNumber(t.Context(), store.ReplacedNumber{Issued: old, Reason: "r", By: "ana", At: noon})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.IssuedUnder(t.Context(), fiscal.Production, old.RNC, old.ENCF); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the number is still issued: %v", err)
	}
}
