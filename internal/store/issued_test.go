package store_test

import (
	"context"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestHighestSentIgnoresNumbersThatWereNotSubmitted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		numbers := addNumberRange(t, s)
		issued := func() bool {
			t.Helper()
			any, err := s.HasIssued(t.Context(), fiscal.Production)
			if err != nil {
				t.Fatal(err)
			}
			return any
		}
		highest := func(to string) string {
			t.Helper()
			encf, err := s.HighestSent(t.Context(), fiscal.Production, "199000013", "E320000000001", to)
			if err != nil {
				t.Fatal(err)
			}
			return encf
		}
		for _, row := range []struct{ encf, kind string }{{"E320000000001", "submit"}, {"E320000000002", "submit"}, {"E320000000003", "deliver"}, {"E320000000004", ""}} {
			if row.encf == "E320000000001" && (issued() || highest("E320000000100") != "") {
				t.Error("HasIssued or HighestSent found a document before one was issued")
			}
			inv := addInvoice(t, s, numbers.Scope, row.encf)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				err := tx.Issue(ctx, store.Issued{
					Scope: inv.Scope, RNC: "199000013", ENCF: row.encf, DocumentID: inv.DocumentID, NumberRangeID: numbers.ID,
					SignedAt: noon, CreatedAt: noon, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte{3},
				})
				if err != nil || row.kind == "" {
					return err
				}
				return tx.Do(ctx, new(store.Batch).OpenAttempt(store.Attempt{Scope: inv.Scope, DocumentID: inv.DocumentID, Number: 1, Kind: row.kind, Digest: []byte{2}, OpenedAt: noon}))
			})
		}
		if !issued() || highest("E320000000100") != "E320000000002" || highest("E320000000001") != "E320000000001" {
			t.Errorf("%t, %s, %s", issued(), highest("E320000000100"), highest("E320000000001"))
		}
		if other, err := s.HasIssued(t.Context(), fiscal.Certification); err != nil || other {
			t.Errorf("in another environment: %t, %v", other, err)
		}
	})
}
