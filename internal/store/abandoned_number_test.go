package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAbandonedNumbersNeverChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addNumberRange(t, s).Scope
		b := func(encf string, found store.NumberPresence) store.AbandonedNumber {
			return store.AbandonedNumber{Scope: scope, RNC: "199000013", ENCF: encf, Presence: found, Detail: "«x»", At: noon}
		}
		want := []store.AbandonedNumber{b("E320000000006", store.NumberFound), b("E320000000007", store.NumberAbsent), b("E320000000010", store.NumberUnknown)}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AbandonNumbers(ctx, want) })
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.AbandonNumbers(ctx, []store.AbandonedNumber{b("E320000000006", store.NumberAbsent)})
		})
		got, err := s.AbandonedNumbers(t.Context(), scope, "199000013", "E320000000006", "E320000000010")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, statement := range []string{`DELETE FROM burned`, `UPDATE burned SET found = 'absent'`} {
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), statement) }); err == nil {
				t.Errorf("the engine accepted: %s", statement)
			}
		}
	})
}
