package access

import (
	"bytes"
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

// wantWhole fails unless a process that starts now has all that is sealed, and
// leaves the right key in the file in use.
func (d *desk) wantWhole(when string, id *xmlsig.Identity) {
	d.t.Helper()
	keys := seal.NewKeys(d.master.File())
	ring, err := LoadKeyring(d.t.Context(), d.Store, keys)
	if err != nil {
		d.t.Fatalf("%s: %v", when, err)
	}
	if !bytes.Equal(ring.peppers[1], d.Ring.peppers[1]) || !bytes.Equal(ring.cursors[0], d.Ring.cursors[0]) ||
		!bytes.Equal(ring.Receiver(), d.Ring.Receiver()) {
		d.t.Errorf("%s: the keys changed", when)
	}
	d.wantSigner(when, d.signers(), id)
	if _, err := FinishRotation(d.t.Context(), d.Store, keys); err != nil {
		d.t.Errorf("%s: finish: %v", when, err)
	}
	needs, err := masterID(d.t.Context(), d.Store)
	d.must(err)
	if has := inUse(d.t, keys); has != needs {
		d.t.Errorf("%s: the file has %s, the database needs %s", when, has, needs)
	}
}

func TestRotationMovesEverything(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		key, _ := d.issue(d.terms())
		id := d.identity(-time.Hour, time.Hour)
		d.imported(d.signers(), id)
		old := inUse(t, d.master)
		done, err := RotateMaster(t.Context(), d.Store, d.master)
		d.must(err)
		if done.Old != old || done.New == old || done.New != inUse(t, d.master) || done.Rewrapped != 4 {
			t.Errorf("done %+v; want from %s to %s with 4 rows", done, old, inUse(t, d.master))
		}
		d.wantWhole("after", id)
		d.reload()
		d.wantGood("after", key)

		// The old key alone opens nothing any more.
		stolen := filepath.Join(t.TempDir(), "master.key")
		d.must(os.Rename(d.master.FileOf(old), stolen))
		_, err = LoadKeyring(t.Context(), d.Store, seal.NewKeys(stolen))
		if !errors.Is(err, seal.ErrWrongKey) || !strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), done.New) {
			t.Errorf("with the old key: %v, want ErrWrongKey and both ids", err)
		}
		d.wantWhole("without the old key", id)
	})
}

// A rotation may end at any of its steps; whoever comes next has everything,
// and can rotate.
func TestEveryInterruptionOfARotation(t *testing.T) {
	t.Parallel()
	for _, point := range []struct {
		name string
		runs func(d *desk)
	}{
		{"before the new key", func(*desk) {}},
		{"after the new key", func(d *desk) {
			_, err := d.master.Add()
			d.must(err)
		}},
		{"within the transaction", func(d *desk) {
			fresh, err := d.master.Add()
			d.must(err)
			// The last row is under a key that nobody has, so all is undone.
			d.spoil()
			if _, err := rewrap(d.t.Context(), d.Store, d.master, fresh); !errors.Is(err, seal.ErrWrongKey) {
				d.t.Errorf("err = %v, want ErrWrongKey", err)
			}
			d.mend()
		}},
		{"after the commit", func(d *desk) {
			fresh, err := d.master.Add()
			d.must(err)
			_, err = rewrap(d.t.Context(), d.Store, d.master, fresh)
			d.must(err)
		}},
		{"after the commit, and the file in use is gone", func(d *desk) {
			fresh, err := d.master.Add()
			d.must(err)
			_, err = rewrap(d.t.Context(), d.Store, d.master, fresh)
			d.must(err)
			d.must(os.Remove(d.master.File()))
		}},
		{"at the end", func(d *desk) {
			_, err := RotateMaster(d.t.Context(), d.Store, d.master)
			d.must(err)
		}},
	} {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				d := newDesk(t, address)
				id := d.identity(-time.Hour, time.Hour)
				d.imported(d.signers(), id)
				point.runs(d)
				d.wantWhole("after the interruption", id)
				point.runs(d) // interrupted again, at the same step
				_, err := RotateMaster(t.Context(), d.Store, seal.NewKeys(d.master.File()))
				d.must(err)
				d.wantWhole("after the next rotation", id)
			})
		})
	}
}

// spoil adds a secret under a master key that nobody has, or puts it there
// again; mend puts it under that of the database.
func (d *desk) spoil() {
	d.t.Helper()
	foreign, err := newMaster(d.t).InUse()
	d.must(err)
	d.must(addKey(d.t.Context(), d.Store, foreign, "spoilt", 1))
	d.seal(foreign)
}

func (d *desk) mend() {
	d.t.Helper()
	master, err := masterKey(d.t.Context(), d.Store, d.master)
	d.must(err)
	d.seal(master)
}

func (d *desk) seal(under *seal.MasterKey) {
	d.t.Helper()
	sealed, err := under.Seal([]byte("x"), keyAAD("spoilt", 1))
	d.must(err)
	d.must(d.Store.Update(d.t.Context(), func(tx *store.Tx) error {
		return tx.RewrapSecret(d.t.Context(), store.Secret{Kind: "spoilt", Version: 1, Sealed: sealed})
	}))
}

// A rotation that is refused leaves no key behind; one whose outcome is not
// known must.
func TestARefusedRotationLeavesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		d.spoil()
		before := inUse(t, d.master)
		if _, err := RotateMaster(t.Context(), d.Store, d.master); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("err = %v, want ErrWrongKey", err)
		}
		entries, err := os.ReadDir(filepath.Dir(d.master.File()))
		if err != nil || len(entries) != 1 || inUse(t, d.master) != before {
			t.Errorf("the folder holds %v, %v", entries, err)
		}
		empty := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
		if _, err := RotateMaster(t.Context(), empty, newMaster(t)); !errors.Is(err, ErrNoKeyring) {
			t.Errorf("on an empty database: %v, want ErrNoKeyring", err)
		}
	})
}

// Nodes that run go on through a rotation: they open what is under the new key,
// and seal under it.
func TestARunningNodeGoesOnAfterARotation(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		key, _ := d.issue(d.terms())
		running, id := d.signers(), d.identity(-time.Hour, time.Hour)
		d.imported(running, id)
		d.wantSigner("before", running, id)
		done, err := RotateMaster(t.Context(), d.Store, d.master)
		d.must(err)
		d.advance(openFor)
		d.wantSigner("after", running, id)
		d.wantGood("after", key)
		renewed := d.identity(-time.Hour, 2*time.Hour)
		kept := d.imported(running, renewed)
		if under, err := seal.KeyID(kept.Sealed); err != nil || under != done.New {
			t.Errorf("sealed under %s, %v; want %s", under, err, done.New)
		}
		d.wantWhole("after the import", renewed)
	})
}

// A node with a copy of the key file says which key it needs, and goes on once
// it has it.
func TestANodeWithACopyNeedsTheNewKey(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		id := d.identity(-time.Hour, time.Hour)
		d.imported(d.signers(), id)
		copied := seal.NewKeys(filepath.Join(t.TempDir(), "master.key"))
		copyFile(t, d.master.File(), copied.File())
		node := NewCertificates(d.Store, copied, d.Now)
		d.wantSigner("before", node, id)
		done, err := RotateMaster(t.Context(), d.Store, d.master)
		d.must(err)
		d.wantSigner("while the key is open", node, id)
		d.advance(openFor)
		_, err = node.Identity(t.Context(), d.production(), d.Now())
		if !errors.Is(err, seal.ErrWrongKey) || !strings.Contains(err.Error(), done.New) {
			t.Errorf("without the new key: %v, want ErrWrongKey and its id", err)
		}
		copyFile(t, d.master.File(), copied.File())
		d.wantSigner("with the new key", node, id)
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

// Rotations and imports that come together leave one key that opens everything.
func TestRotationsAndImportsTogether(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		leaves := make([]*xmlsigtest.Leaf, 6)
		for i := range leaves {
			leaves[i] = xmlsigtest.Must(t, xmlsigtest.Options{NotBefore: d.Now().Add(-time.Hour)})
		}
		var all sync.WaitGroup
		for _, leaf := range leaves {
			all.Go(func() {
				if _, err := d.signers().Import(t.Context(), d.production(), leaf.Identity); err != nil {
					t.Errorf("import: %v", err)
				}
			})
			all.Go(func() {
				if _, err := RotateMaster(t.Context(), d.Store, seal.NewKeys(d.master.File())); err != nil {
					t.Errorf("rotate: %v", err)
				}
			})
		}
		all.Wait()
		stored, err := d.Store.CertificatesOf(t.Context(), d.production())
		if err != nil || len(stored) != len(leaves) {
			t.Fatalf("%d certificates, %v", len(stored), err)
		}
		needs, err := masterID(t.Context(), d.Store)
		d.must(err)
		for _, c := range stored {
			if under, err := seal.KeyID(c.Sealed); err != nil || under != needs {
				t.Errorf("certificate %s is under %s, %v; want %s", c.ID, under, err, needs)
			}
			if _, err := d.signers().unseal(c); err != nil {
				t.Errorf("certificate %s: %v", c.ID, err)
			}
		}
		keys := seal.NewKeys(d.master.File())
		if _, err := FinishRotation(t.Context(), d.Store, keys); err != nil || inUse(t, keys) != needs {
			t.Errorf("the file has %s, %v; want %s", inUse(t, keys), err, needs)
		}
	})
}
