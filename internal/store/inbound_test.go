package store_test

import (
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestAMessageIsReceivedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		var fresh atomic.Int64
		receive := func(source, id string) {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				is, err := tx.ReceiveInbound(t.Context(), store.Inbound{Scope: scope, SourceID: source, MessageID: id, At: noon, Kind: "a"})
				if is {
					fresh.Add(1)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		together(8, func(int) { receive("s", "m") })
		receive("s", "n")
		receive("r", "m")
		if fresh.Load() != 3 {
			t.Errorf("%d were new, want 3", fresh.Load())
		}
	})
}
