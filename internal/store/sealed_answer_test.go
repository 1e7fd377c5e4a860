package store_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// The answer of a key is stored once, and its body only encrypted.
func TestASealedAnswerIsStoredOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		var fresh atomic.Int64
		together(8, func(i int) {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				is, err := tx.RememberReply(t.Context(), sampleAnswer(scope, "k"), store.SealedSecret{Sealed: []byte{byte(i)}, Version: 1})
				if is {
					fresh.Add(1)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		answer, err := s.StoredReply(t.Context(), scope, "create_invoice", "k")
		if err != nil || len(answer.Body) != 0 || fresh.Load() != 1 {
			t.Errorf("stored %d times; the body is %q, %v; want once and an empty body", fresh.Load(), answer.Body, err)
		}
		sealed, err := s.SealedAnswer(t.Context(), scope, "create_invoice", "k")
		if err != nil || len(sealed.Secret.Sealed) != 1 || sealed.Secret.Version != 1 {
			t.Errorf("sealed %+v, %v", sealed, err)
		}
		sealed.Secret.Sealed = []byte("again")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RewrapAnswer(ctx, sealed) })
		all, err := s.SealedAnswers(t.Context())
		if err != nil || len(all) != 1 || !bytes.Equal(all[0].Secret.Sealed, []byte("again")) {
			t.Errorf("all %+v, %v", all, err)
		}
		if _, err := s.SealedAnswer(t.Context(), addLiveScope(t, s), "create_invoice", "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of another taxpayer: %v, want ErrNotFound", err)
		}
	})
}
