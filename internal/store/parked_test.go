package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestParkedMessagesAreKeptForThirtyDays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, other := addLiveScope(t, s), addLiveScope(t, s)
		p := store.Parked{Scope: scope, ID: store.NewID(), SourceID: "s", MessageID: "m", Kind: "a", ENCF: "E310000000001", Body: []byte("<x/>"), At: noon}
		q := p
		q.ID, q.MessageID = store.NewID(), "n"
		for _, one := range []store.Parked{p, q} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Park(ctx, one) })
		}
		p.ExpiresAt, q.ExpiresAt = noon.Add(30*24*time.Hour), noon.Add(30*24*time.Hour)
		parked := func(scope store.Scope, at time.Time) []store.Parked {
			t.Helper()
			got, err := s.Parked(t.Context(), scope, p.ENCF, at)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if diff := cmp.Diff([]store.Parked{p, q}, parked(scope, p.ExpiresAt.Add(-time.Microsecond))); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if len(parked(other, noon)) != 0 || len(parked(scope, p.ExpiresAt)) != 0 {
			t.Error("another taxpayer gets the messages, or they do not expire")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			was, err := tx.Unpark(ctx, scope, p.ID)
			again, errAgain := tx.Unpark(ctx, scope, p.ID)
			if !was || again {
				t.Errorf("unparked: %v, then %v", was, again)
			}
			return errors.Join(err, errAgain)
		})
	})
}

func TestParkedMessagesAreFoundWhenTheirDocumentExists(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, other := addLiveScope(t, s), addLiveScope(t, s)
		taxpayer, err := s.Taxpayer(t.Context(), scope.TaxpayerID)
		if err != nil {
			t.Fatal(err)
		}
		park := func(scope store.Scope, encf string, at time.Time) store.Parked {
			p := store.Parked{Scope: scope, ID: store.NewID(), SourceID: "s", MessageID: store.NewID(), Kind: "a", ENCF: encf, Body: []byte("<x/>"), At: at}
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Park(ctx, p) })
			p.ExpiresAt = at.Add(30 * 24 * time.Hour)
			return p
		}
		issue := func(encf string) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Exec(ctx, `
					INSERT INTO issued_documents (environment, rnc, encf, taxpayer_id, document_id, range_id, certificate, number_state, security_code,
						buyer_rnc, signed_at, created_at, xml_sha256, sent_sha256, xml)
					VALUES ($1, $2, $3, $4, $5, '', '', 'used', '', '', 0, 0, $6, $6, $6)`,
					string(scope.Environment), taxpayer.RNC, encf, scope.TaxpayerID, store.NewID(), []byte{1})
			})
		}
		second := park(scope, "E310000000002", noon.Add(time.Second))
		first := park(scope, "E310000000001", noon)
		park(scope, "E310000000003", noon)
		park(other, "E310000000001", noon)
		find := func(after store.Parked, now time.Time, limit int) []store.Parked {
			t.Helper()
			got, err := s.ParkedWithDocument(t.Context(), scope.Environment, after, now, limit)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := find(store.Parked{}, noon, 10); len(got) != 0 {
			t.Errorf("found %v without a document", got)
		}
		issue(first.ENCF)
		issue(second.ENCF)
		if diff := cmp.Diff([]store.Parked{first, second}, find(store.Parked{}, noon, 10)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]store.Parked{second}, find(find(store.Parked{}, noon, 1)[0], noon, 10)); diff != "" {
			t.Errorf("the second page (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]store.Parked{second}, find(store.Parked{}, first.ExpiresAt, 10)); diff != "" {
			t.Errorf("after the first one expired (-want +got):\n%s", diff)
		}
	})
}
