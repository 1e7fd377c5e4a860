package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestLatestHeartbeatIsOfANodeWithAWitness(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		beat := func(n store.Node) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RecordHeartbeat(ctx, n) })
		}
		want := func(what string, want time.Time) {
			t.Helper()
			got, err := s.LatestHeartbeat(t.Context(), fiscal.Production)
			if err != nil || !got.Equal(want) {
				t.Errorf("%s: %v, %v; want %v", what, got, err, want)
			}
		}
		want("no node", time.Time{})
		beat(store.Node{ID: "b", Environment: fiscal.Production, SeenAt: noon.Add(time.Hour)})
		beat(store.Node{ID: "c", Environment: fiscal.Certification, HasWitness: true, SeenAt: noon.Add(time.Hour)})
		want("no node with a witness", time.Time{})
		node := store.Node{ID: "a", Environment: fiscal.Production, HasWitness: true, SeenAt: noon}
		beat(node)
		want("one node", noon)
		node.SeenAt = noon.Add(time.Second)
		beat(node)
		want("its next heartbeat", node.SeenAt)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteNodes(ctx, "a", noon.Add(-time.Hour)) })
		want("a node that ended", time.Time{})
	})
}
