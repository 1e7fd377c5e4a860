package access

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// wantAllOpen fails unless a process that starts now can open all secrets and leaves
// the right key in the file in use.
func (e *env) wantAllOpen(when string, id *xmlsig.Identity) {
	e.t.Helper()
	keys := seal.NewKeys(e.master.File())
	ring, err := LoadKeyring(e.t.Context(), e.store, keys)
	if err != nil {
		e.t.Fatalf("%s: %v", when, err)
	}
	if !bytes.Equal(ring.set.Load().peppers[1], e.ring.set.Load().peppers[1]) || !bytes.Equal(ring.Cursors()[0], e.ring.Cursors()[0]) ||
		!bytes.Equal(ring.Receivers()[0], e.ring.Receivers()[0]) {
		e.t.Errorf("%s: the keys changed", when)
	}
	e.wantSigner(when, e.certificates(), id)
	if _, err := FinishRotation(e.t.Context(), e.store, keys); err != nil {
		e.t.Errorf("%s: finish: %v", when, err)
	}
	needs, err := masterID(e.t.Context(), e.store)
	e.must(err)
	if has := inUse(e.t, keys); has != needs {
		e.t.Errorf("%s: the file has %s, the database needs %s", when, has, needs)
	}
}

func TestRotateMasterMovesAllSecrets(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, _ := e.issue(e.terms())
		id := e.identity(-time.Hour, time.Hour)
		e.importCertificate(e.certificates(), id)
		old := inUse(t, e.master)
		done, err := RotateMaster(t.Context(), e.store, e.master, nil)
		e.must(err)
		if done.Old != old || done.New == old || done.New != inUse(t, e.master) || done.Rewrapped != 5 {
			t.Errorf("done %+v; want from %s to %s with 5 rows", done, old, inUse(t, e.master))
		}
		e.wantAllOpen("after", id)
		e.reload()
		e.wantValid("after", key)

		// The old key no longer opens anything.
		stolen := filepath.Join(t.TempDir(), "master.key")
		e.must(os.Rename(e.master.FileOf(old), stolen))
		_, err = LoadKeyring(t.Context(), e.store, seal.NewKeys(stolen))
		if !errors.Is(err, seal.ErrWrongKey) || !strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), done.New) {
			t.Errorf("with the old key: %v, want ErrWrongKey and both ids", err)
		}
		e.wantAllOpen("without the old key", id)
	})
}

// After an interruption at any step of a rotation, the next process can open all
// secrets and can rotate again.
func TestAnInterruptedRotationLosesNothing(t *testing.T) {
	t.Parallel()
	for _, point := range []struct {
		name string
		runs func(e *env)
	}{
		{"before the new key", func(*env) {}},
		{"after the new key", func(e *env) {
			_, err := e.master.Add()
			e.must(err)
		}},
		{"within the transaction", func(e *env) {
			fresh, err := e.master.Add()
			e.must(err)
			// The last row is under an unknown key, so the transaction is rolled back.
			e.addUnreadableSecret()
			if _, err := rewrap(e.t.Context(), e.store, e.master, fresh, nil); !errors.Is(err, seal.ErrWrongKey) {
				e.t.Errorf("err = %v, want ErrWrongKey", err)
			}
			e.repairSecret()
		}},
		{"after the commit", func(e *env) {
			fresh, err := e.master.Add()
			e.must(err)
			_, err = rewrap(e.t.Context(), e.store, e.master, fresh, nil)
			e.must(err)
		}},
		{"after the commit, and the file in use is gone", func(e *env) {
			fresh, err := e.master.Add()
			e.must(err)
			_, err = rewrap(e.t.Context(), e.store, e.master, fresh, nil)
			e.must(err)
			e.must(os.Remove(e.master.File()))
		}},
		{"at the end", func(e *env) {
			_, err := RotateMaster(e.t.Context(), e.store, e.master, nil)
			e.must(err)
		}},
	} {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				e := newEnv(t, address)
				id := e.identity(-time.Hour, time.Hour)
				e.importCertificate(e.certificates(), id)
				point.runs(e)
				e.wantAllOpen("after the interruption", id)
				point.runs(e) // interrupted again, at the same step
				_, err := RotateMaster(t.Context(), e.store, seal.NewKeys(e.master.File()), nil)
				e.must(err)
				e.wantAllOpen("after the next rotation", id)
			})
		})
	}
}

// addUnreadableSecret stores a secret under an unknown master key. repairSecret seals it
// under the master key of the database.
func (e *env) addUnreadableSecret() {
	e.t.Helper()
	foreign, err := newMaster(e.t).InUse()
	e.must(err)
	e.must(addKey(e.t.Context(), e.store, foreign, "test", 1))
	e.sealSecret(foreign)
}

func (e *env) repairSecret() {
	e.t.Helper()
	master, err := masterKey(e.t.Context(), e.store, e.master)
	e.must(err)
	e.sealSecret(master)
}

func (e *env) sealSecret(under *seal.MasterKey) {
	e.t.Helper()
	sealed, err := under.Seal([]byte("x"), keyAAD("test", 1))
	e.must(err)
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error {
		return tx.RewrapSecret(e.t.Context(), store.Secret{Kind: "test", Version: 1, Sealed: sealed})
	}))
}

func TestAFailedRotationLeavesNoKeyFile(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		e.addUnreadableSecret()
		before := inUse(t, e.master)
		if _, err := RotateMaster(t.Context(), e.store, e.master, nil); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("err = %v, want ErrWrongKey", err)
		}
		entries, err := os.ReadDir(filepath.Dir(e.master.File()))
		if err != nil || len(entries) != 1 || inUse(t, e.master) != before {
			t.Errorf("the folder holds %v, %v", entries, err)
		}
		empty := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
		if _, err := RotateMaster(t.Context(), empty, newMaster(t), nil); !errors.Is(err, ErrNoKeyring) {
			t.Errorf("on an empty database: %v, want ErrNoKeyring", err)
		}
	})
}

// A running node opens and seals secrets under the new key after a rotation.
func TestARunningNodeFollowsARotation(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, _ := e.issue(e.terms())
		running, id := e.certificates(), e.identity(-time.Hour, time.Hour)
		e.importCertificate(running, id)
		e.wantSigner("before", running, id)
		done, err := RotateMaster(t.Context(), e.store, e.master, nil)
		e.must(err)
		e.advance(openFor)
		e.wantSigner("after", running, id)
		e.wantValid("after", key)
		renewed := e.identity(-time.Hour, 2*time.Hour)
		kept := e.importCertificate(running, renewed)
		if under, err := seal.KeyID(kept.Sealed); err != nil || under != done.New {
			t.Errorf("sealed under %s, %v; want %s", under, err, done.New)
		}
		e.wantAllOpen("after the import", renewed)
	})
}

// A node with its own copy of the key file reports which key it needs, and works again
// after the new file is copied.
func TestANodeWithACopiedKeyFileNeedsTheNewKey(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		id := e.identity(-time.Hour, time.Hour)
		e.importCertificate(e.certificates(), id)
		copied := seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))
		copyFile(t, e.master.File(), copied.File())
		node := NewCertificates(e.store, copied, e.now)
		e.wantSigner("before", node, id)
		done, err := RotateMaster(t.Context(), e.store, e.master, nil)
		e.must(err)
		e.wantSigner("while the key is cached", node, id)
		e.advance(openFor)
		_, err = node.Identity(t.Context(), e.production(), e.now())
		if !errors.Is(err, seal.ErrWrongKey) || !strings.Contains(err.Error(), done.New) {
			t.Errorf("without the new key: %v, want ErrWrongKey and its id", err)
		}
		copyFile(t, e.master.File(), copied.File())
		e.wantSigner("with the new key", node, id)
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// After concurrent rotations and imports, one key opens everything.
func TestConcurrentRotationsAndImports(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		leaves := make([]*xmlsigtest.Leaf, 6)
		for i := range leaves {
			leaves[i] = xmlsigtest.Must(t, xmlsigtest.Options{NotBefore: e.now().Add(-time.Hour)})
		}
		var all sync.WaitGroup
		for _, leaf := range leaves {
			all.Go(func() {
				if _, err := e.certificates().Import(t.Context(), e.production(), leaf.Identity); err != nil {
					t.Errorf("import: %v", err)
				}
			})
			all.Go(func() {
				if _, err := RotateMaster(t.Context(), e.store, seal.NewKeys(e.master.File()), nil); err != nil {
					t.Errorf("rotate: %v", err)
				}
			})
		}
		all.Wait()
		stored, err := e.store.CertificatesOf(t.Context(), e.production())
		if err != nil || len(stored) != len(leaves) {
			t.Fatalf("%d certificates, %v", len(stored), err)
		}
		needs, err := masterID(t.Context(), e.store)
		e.must(err)
		for _, c := range stored {
			if under, err := seal.KeyID(c.Sealed); err != nil || under != needs {
				t.Errorf("certificate %s is under %s, %v; want %s", c.ID, under, err, needs)
			}
			if _, err := e.certificates().openCertificate(c); err != nil {
				t.Errorf("certificate %s: %v", c.ID, err)
			}
		}
		keys := seal.NewKeys(e.master.File())
		if _, err := FinishRotation(t.Context(), e.store, keys); err != nil || inUse(t, keys) != needs {
			t.Errorf("the file has %s, %v; want %s", inUse(t, keys), err, needs)
		}
	})
}

// A rotation that a signal ends has changed nothing, leaves no new key, and can be made
// again.
func TestARotationThatIsCancelledChangesNothing(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		id := e.identity(-time.Hour, time.Hour)
		e.importCertificate(e.certificates(), id)
		old := inUse(t, e.master)
		files := func() int {
			t.Helper()
			list, err := filepath.Glob(e.master.File() + "*")
			e.must(err)
			return len(list)
		}
		before := files()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := RotateMaster(ctx, e.store, e.master, func(done, total int) {
			if done == 1 && total > 2 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || inUse(t, e.master) != old || files() != before {
			t.Errorf("err = %v, the key in use is %s, want %s; %d files, want %d", err, inUse(t, e.master), old, files(), before)
		}
		e.wantAllOpen("after the interruption", id)
		var last [2]int
		done, err := RotateMaster(t.Context(), e.store, e.master, func(done, total int) { last = [2]int{done, total} })
		if err != nil || last != [2]int{done.Rewrapped, done.Rewrapped} || done.Rewrapped == 0 {
			t.Errorf("%+v, %v; the progress ended with %v", done, err, last)
		}
		e.wantAllOpen("after the second rotation", id)
	})
}
