package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Nodes that start at the same time on an empty database must use the same secret.
func TestTheFirstSecretOfAVersionIsKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		together(20, func(i int) {
			if err := s.AddSecret(t.Context(), store.Secret{Kind: "pepper", Version: 2, Sealed: []byte{byte(i), 0}}); err != nil {
				t.Error(err)
			}
		})
		first, err := s.Secrets(t.Context(), "pepper")
		if err != nil || len(first) != 1 {
			t.Fatalf("secrets %v, %v; want one", first, err)
		}
		for _, more := range []store.Secret{
			{Kind: "pepper", Version: 2, Sealed: []byte("late")}, {Kind: "pepper", Version: 1, Sealed: []byte("old")}, {Kind: "cursor", Version: 1, Sealed: []byte("other")},
		} {
			if err := s.AddSecret(t.Context(), more); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Secrets(t.Context(), "pepper")
		if err != nil {
			t.Fatal(err)
		}
		old := store.Secret{Kind: "pepper", Version: 1, Sealed: []byte("old"), CreatedAt: first[0].CreatedAt}
		if diff := cmp.Diff([]store.Secret{old, first[0]}, got, cmpopts.EquateApproxTime(time.Minute)); diff != "" {
			t.Errorf("the oldest version first (-want +got):\n%s", diff)
		}
	})
}
