package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestWitnessAliveNeedsARecentHeartbeat(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		beat := func(n store.Node) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RecordHeartbeat(ctx, n) })
		}
		alive := func() bool {
			t.Helper()
			is, err := s.WitnessAlive(t.Context(), fiscal.Production, noon)
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		node := store.Node{ID: "a", Environment: fiscal.Production, HasWitness: true, SeenAt: noon.Add(-time.Second)}
		beat(node)
		beat(store.Node{ID: "b", Environment: fiscal.Production, SeenAt: noon})
		beat(store.Node{ID: "c", Environment: fiscal.Certification, HasWitness: true, SeenAt: noon})
		if alive() {
			t.Error("alive without a recent heartbeat of a node with a witness in the environment")
		}
		node.SeenAt = noon
		beat(node)
		if !alive() {
			t.Error("not alive after a heartbeat")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteNodes(ctx, "a", noon.Add(-time.Hour)) })
		if alive() || count(t, s, "nodes") != 2 {
			t.Error("the node was not deleted")
		}
	})
}
