package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// node returns the keyring of another node.
func (e *env) node() *Keyring {
	e.t.Helper()
	ring, err := LoadKeyring(e.t.Context(), e.store, seal.NewKeys(e.master.File()))
	e.must(err)
	return ring
}

// A running node accepts what a new version of a key has made before any node makes
// something with it, and goes on accepting the old version as long as a client may need
// it.
func TestANewKeyIsUsedWhenEveryNodeHasIt(t *testing.T) {
	for kind, keysOf := range map[string]struct {
		keys func(*Keyring) [][]byte
		life time.Duration
	}{
		"cursor":   {(*Keyring).Cursors, cursorTime},
		"receiver": {(*Keyring).Receivers, receiverTime},
	} {
		t.Run(kind, func(t *testing.T) {
			forEachEngine(t, func(t *testing.T, e *env) {
				running := e.node()
				old := keysOf.keys(running)[0]
				made, err := RotateKey(t.Context(), e.store, e.master, kind, false)
				if err != nil || made.Version != 2 {
					t.Fatalf("%+v, %v", made, err)
				}
				e.must(running.Reload(t.Context()))
				for _, ring := range []*Keyring{running, e.node()} {
					if got := keysOf.keys(ring); len(got) != 2 || !bytes.Equal(got[0], old) {
						t.Errorf("a new version is used before every node has it: %d keys", len(got))
					}
				}
				e.advance(5 * time.Second)
				got := keysOf.keys(running)
				if len(got) != 2 || bytes.Equal(got[0], old) || !bytes.Equal(got[1], old) {
					t.Errorf("5 seconds later the new version is not used, or the old one is not accepted: %d keys", len(got))
				}
				e.advance(keysOf.life)
				if got := keysOf.keys(running); len(got) != 1 || bytes.Equal(got[0], old) {
					t.Errorf("the old version is accepted for ever: %d keys", len(got))
				}
			})
		})
	}
}

// After a leak the old versions are dropped with the rotation.
func TestADroppedKeyIsNotAccepted(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		running := e.node()
		old := running.Cursors()[0]
		_, err := RotateKey(t.Context(), e.store, e.master, kindCursor, true)
		e.must(err)
		e.must(running.Reload(t.Context()))
		if got := running.Cursors(); len(got) != 1 || bytes.Equal(got[0], old) {
			t.Errorf("the old key is accepted: %d keys", len(got))
		}
		entries, err := e.store.AuditEntries(t.Context(), store.AuditFilter{Object: "key:cursor"}, 0, 10)
		if err != nil || len(entries) != 1 || entries[0].Action != "key.rotate" || entries[0].After != `{"dropped":1,"version":2}` {
			t.Errorf("the audit log has %+v, %v", entries, err)
		}
	})
}

// A pepper can be dropped when no usable credential needs it.
func TestAPepperIsDroppedAfterItsCredentials(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		old, made := e.issue(e.terms())
		behind := e.node()
		_, err := RotateKey(t.Context(), e.store, e.master, kindPepper, true)
		if !errors.Is(err, ErrKeyNeeded) {
			t.Fatalf("with a usable credential: %v, want ErrKeyNeeded", err)
		}
		_, err = RotateKey(t.Context(), e.store, e.master, kindPepper, false)
		e.must(err)
		e.must(e.ring.Reload(t.Context()))
		e.wantValid("of the old pepper", old)
		if err := DropKey(t.Context(), e.store, kindPepper, 1); !errors.Is(err, ErrKeyNeeded) {
			t.Errorf("with a usable credential: %v, want ErrKeyNeeded", err)
		}
		listed := KeyVersion{Kind: kindPepper, Version: 1} // before the credential was added
		err = e.store.Update(t.Context(), func(tx *store.Tx) error { return dropKey(t.Context(), tx, listed, e.now()) })
		if !errors.Is(err, ErrKeyNeeded) {
			t.Errorf("with a credential that was added later: %v, want ErrKeyNeeded", err)
		}
		fresh, successor, err := e.Rotate(t.Context(), made.ID, 0)
		e.must(err)
		if successor.PepperVersion != 2 {
			t.Errorf("the successor has pepper %d", successor.PepperVersion)
		}
		e.advance(time.Second)
		e.must(DropKey(t.Context(), e.store, kindPepper, 1))
		late, added, err := NewCredentials(e.store, behind, e.now).Issue(t.Context(), e.terms())
		e.must(err)
		if added.PepperVersion != 2 {
			t.Errorf("a new credential has pepper %d, want 2", added.PepperVersion)
		}
		e.must(e.ring.Reload(t.Context()))
		e.wantValid("of a node that had loaded only the dropped pepper", late)
		e.wantDenied("without its pepper", old)
		e.wantValid("of the new pepper", fresh)
		for _, tt := range []struct {
			kind    string
			version int64
			want    error
		}{{kindPepper, 2, ErrKeyNeeded}, {kindPepper, 1, store.ErrNotFound}, {kindAudit, 1, ErrKeyNeeded}, {kindBound, 1, store.ErrNotFound}} {
			if err := DropKey(t.Context(), e.store, tt.kind, tt.version); !errors.Is(err, tt.want) {
				t.Errorf("%s %d: %v, want %v", tt.kind, tt.version, err, tt.want)
			}
		}
	})
}

// A checkpoint stays valid after a rotation of the key that signed it.
func TestOldCheckpointsStayValid(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		before := audit.NewCheckpoint(e.ring.Audit(), audit.Head{Seq: 1, Hash: audit.Start()}, e.now())
		_, err := RotateKey(t.Context(), e.store, e.master, kindAudit, false)
		e.must(err)
		e.must(e.ring.Reload(t.Context()))
		after := audit.NewCheckpoint(e.ring.Audit(), audit.Head{Seq: 1, Hash: audit.Start()}, e.now())
		if e.ring.VerifyCheckpoint(before) != nil || e.ring.VerifyCheckpoint(after) != nil || bytes.Equal(before.Signature, after.Signature) {
			t.Error("a checkpoint is not valid, or has the same key as before")
		}
		after.Seq++
		if err := e.ring.VerifyCheckpoint(after); !errors.Is(err, audit.ErrCheckpoint) {
			t.Errorf("a changed checkpoint: %v", err)
		}
	})
}

// Concurrent rotations of keys and of the master key lose no version.
func TestConcurrentRotationsOfKeys(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := RotateKey(t.Context(), e.store, seal.NewKeys(e.master.File()), kindCursor, false); err != nil {
					t.Errorf("rotate: %v", err)
				}
			})
			all.Go(func() {
				if _, err := RotateMaster(t.Context(), e.store, seal.NewKeys(e.master.File()), nil); err != nil {
					t.Errorf("rotate the master key: %v", err)
				}
			})
		}
		all.Wait()
		if got := e.node().Cursors(); len(got) != 4 {
			t.Errorf("%d cursor keys, want 4", len(got))
		}
	})
}

// Run loads a new version without being asked, and keeps its keys while the database
// cannot be read.
func TestRunLoadsNewKeys(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	running := e.node()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { running.Run(ctx, slog.New(slog.DiscardHandler)) })
	defer all.Wait()
	defer cancel()
	_, err := RotateKey(t.Context(), e.store, e.master, kindCursor, true)
	e.must(err)
	want := e.node().Cursors()[0]
	for deadline := time.Now().Add(5 * time.Second); !bytes.Equal(running.Cursors()[0], want); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new key is not loaded after 5 seconds")
		}
	}
}
