package access

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Nodes that start at the same time on an empty database get the same keys.
func TestConcurrentLoadsCreateOneKeyring(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		master := newMaster(t)
		const loaders = 6
		rings := make([]*Keyring, loaders)
		stores := []int{0, 0, 0, 1, 1, 1}
		nodes := [2]func() (*Keyring, error){}
		for i := range nodes {
			s := storetest.Open(t, address, time.Now)
			nodes[i] = func() (*Keyring, error) { return LoadKeyring(t.Context(), s, master) }
		}
		var all sync.WaitGroup
		for i := range loaders {
			all.Go(func() {
				ring, err := nodes[stores[i]]()
				if err != nil {
					t.Error(err)
				}
				rings[i] = ring
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		for _, ring := range rings {
			if ring.set.Load().newest != 1 || len(ring.set.Load().peppers) != 1 || len(ring.set.Load().cursors) != 1 {
				t.Fatalf("version %d, %d peppers, %d cursor keys", ring.set.Load().newest, len(ring.set.Load().peppers), len(ring.set.Load().cursors))
			}
			if !bytes.Equal(ring.set.Load().peppers[1], rings[0].set.Load().peppers[1]) || !bytes.Equal(ring.Cursors()[0], rings[0].Cursors()[0]) ||
				!bytes.Equal(ring.Receivers()[0], rings[0].Receivers()[0]) {
				t.Error("two nodes have different keys")
			}
		}
		first := rings[0]
		if len(first.set.Load().peppers[1]) != len(boundPepper)+keySize || bytes.Equal(first.set.Load().peppers[1], first.Cursors()[0]) || bytes.Equal(first.set.Load().peppers[1], make([]byte, keySize)) {
			t.Error("the pepper and the cursor key are not two random keys")
		}
		if len(first.Receivers()[0]) != keySize || bytes.Equal(first.Receivers()[0], first.Cursors()[0]) {
			t.Error("the receiver does not have its own key")
		}
		again, err := nodes[0]()
		if err != nil || !bytes.Equal(again.set.Load().peppers[1], first.set.Load().peppers[1]) {
			t.Errorf("loaded again: %v", err)
		}
	})
}

func TestTheDatabaseHoldsOnlySealedKeys(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		ring, err := LoadKeyring(t.Context(), s, newMaster(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{kindPepper, kindCursor} {
			stored, err := s.Secrets(t.Context(), kind)
			if err != nil || len(stored) != 1 {
				t.Fatalf("%s: %d stored, %v", kind, len(stored), err)
			}
			if bytes.Contains(stored[0].Sealed, ring.set.Load().peppers[1]) || bytes.Contains(stored[0].Sealed, ring.Cursors()[0]) {
				t.Errorf("%s is stored in the clear", kind)
			}
		}
	})
}

func TestLoadKeyringReportsAnotherMasterKey(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		right, wrong := newMaster(t), newMaster(t)
		if _, err := LoadKeyring(t.Context(), s, right); err != nil {
			t.Fatal(err)
		}
		_, err := LoadKeyring(t.Context(), s, wrong)
		if err == nil || !strings.Contains(err.Error(), "another master key") || !strings.Contains(err.Error(), inUse(t, wrong)) || !strings.Contains(err.Error(), "--master-key") {
			t.Errorf("the error is %v", err)
		}
		// LoadKeyring created no new keys in place of the ones that it could not open.
		if _, err := LoadKeyring(t.Context(), s, right); err != nil {
			t.Errorf("the right key: %v", err)
		}
		for _, kind := range []string{kindPepper, kindCursor} {
			if stored, err := s.Secrets(t.Context(), kind); err != nil || len(stored) != 1 {
				t.Errorf("%s: %d stored, %v", kind, len(stored), err)
			}
		}
	})
}

// A sealed key in the row of another kind or version does not open.
func TestSealedKeysAreBoundToTheirRows(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		master := newMaster(t)
		if _, err := LoadKeyring(t.Context(), s, master); err != nil {
			t.Fatal(err)
		}
		cursors, err := s.Secrets(t.Context(), kindCursor)
		if err != nil {
			t.Fatal(err)
		}
		moved := cursors[0]
		moved.Kind, moved.Version = kindPepper, 2
		if err := s.AddSecret(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKeyring(t.Context(), s, master); err == nil {
			t.Error("a cursor key is accepted as a pepper")
		}
	})
}
