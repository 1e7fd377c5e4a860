package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestDocumentStatesReadsManyDocuments(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		fresh, issued := addInvoice(t, s, scope, "fresh"), addInvoice(t, s, scope, "issued")
		row := store.Issued{
			Scope: scope, RNC: "199000013", ENCF: "E310000000001", DocumentID: issued.DocumentID, NumberRangeID: "s", Certificate: "c",
			State: store.NumberIssued, SecurityCode: "abcdef", BuyerRNC: "199000021", SignedAt: noon, CreatedAt: noon,
			XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte("<x/>"), Summary: []byte("<y/>"), Summarized: true,
		}
		evidence := store.Evidence{Scope: scope, DocumentID: issued.DocumentID, ID: "e", At: noon, Kind: "track", TrackID: "T", Verdict: 1, Body: "{}", Digest: []byte{3}}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Issue(ctx, row); err != nil {
				return err
			}
			return tx.Do(ctx, new(store.Batch).AddEvidence(evidence))
		})
		row.XML, row.Summary = nil, nil // DocumentStates does not read them
		states, err := s.DocumentStates(t.Context(), scope.Environment, []string{fresh.DocumentID, issued.DocumentID, "unknown"})
		if err != nil {
			t.Fatal(err)
		}
		issued.ENCF = row.ENCF
		want := map[string]*store.DocumentState{
			fresh.DocumentID:  {Invoice: fresh, Request: []byte(`{"a":1}`)},
			issued.DocumentID: {Invoice: issued, Issued: &row, Evidence: []store.Evidence{evidence}},
		}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if other, err := s.DocumentStates(t.Context(), fiscal.Sandbox, []string{fresh.DocumentID}); err != nil || len(other) != 0 {
			t.Errorf("in another environment: %v, %v; want none", other, err)
		}
		if none, err := s.DocumentStates(t.Context(), scope.Environment, nil); err != nil || len(none) != 0 {
			t.Errorf("without ids: %v, %v; want none", none, err)
		}
	})
}
