package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
		for _, more := range []store.Secret{{"pepper", 2, []byte("late")}, {"pepper", 1, []byte("old")}, {"cursor", 1, []byte("other")}} {
			if err := s.AddSecret(t.Context(), more); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Secrets(t.Context(), "pepper")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]store.Secret{{"pepper", 1, []byte("old")}, first[0]}, got); diff != "" {
			t.Errorf("the oldest version first (-want +got):\n%s", diff)
		}
	})
}
