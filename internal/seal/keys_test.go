package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func newKeys(t *testing.T) (keys *Keys, id string) {
	t.Helper()
	keys = NewKeys(filepath.Join(t.TempDir(), "master.key"))
	m, err := keys.InUse()
	if err != nil {
		t.Fatal(err)
	}
	return keys, m.ID()
}

// reload returns the keys as another process reads them from the files.
func reload(k *Keys) *Keys { return NewKeys(k.path) }

func mustAdd(t *testing.T, k *Keys) *MasterKey {
	t.Helper()
	m, err := k.Add()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestKeysAreFoundByID(t *testing.T) {
	t.Parallel()
	keys, first := newKeys(t)
	second := mustAdd(t, keys).ID()
	for _, id := range []string{first, second} {
		if m, err := reload(keys).ByID(id); err != nil || m.ID() != id {
			t.Errorf("before: %v, %v", m, err)
		}
	}
	if err := keys.Use(second); err != nil {
		t.Fatal(err)
	}
	if m, err := Load(keys.File()); err != nil || m.ID() != second {
		t.Errorf("the file in use: %v", err)
	}
	for _, id := range []string{first, second} {
		if m, err := reload(keys).ByID(id); err != nil || m.ID() != id {
			t.Errorf("after: %v, %v", m, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(keys.File()))
	if err != nil || len(entries) != 3 {
		t.Errorf("the folder holds %v, %v; want the key in use and two kept ones", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v; want 0600", e.Name(), info.Mode(), err)
		}
	}
	if _, err := reload(keys).ByID("0011223344556677"); !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), second) {
		t.Errorf("an unknown key: %v, want ErrWrongKey and the id of the key in the file", err)
	}
}

func TestKeysWithoutAFile(t *testing.T) {
	t.Parallel()
	keys, first := newKeys(t)
	second := mustAdd(t, keys).ID()
	if _, err := keys.ByID(first); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(keys.File()); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.ByID(first); err != nil {
		t.Errorf("a process that has read the key lost it when the file was removed: %v", err)
	}
	if _, err := reload(keys).ByID(first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another process: %v, want fs.ErrNotExist", err)
	}
	if _, err := reload(keys).ByID(second); err != nil {
		t.Errorf("a kept key cannot be read without the file in use: %v", err)
	}
	if err := keys.Use(second); err != nil {
		t.Error(err)
	}
	if m, err := Load(keys.File()); err != nil || m.ID() != second {
		t.Errorf("the file in use: %v", err)
	}
}

// A bad file is reported, and no other file is used instead of it.
func TestKeysRefuseFiles(t *testing.T) {
	t.Parallel()
	keys, first := newKeys(t)
	second := mustAdd(t, keys).ID()
	if err := os.Chmod(keys.File(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first, second} {
		if _, err := reload(keys).ByID(id); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a file in use that other users may open: %v", err)
		}
	}
	if err := keys.Use(second); err == nil {
		t.Error("Use replaced a file that other users may open")
	}
	if err := os.Chmod(keys.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(keys.FileOf(second), keys.FileOf("0011223344556677")); err != nil {
		t.Fatal(err)
	}
	if _, err := reload(keys).ByID("0011223344556677"); err == nil {
		t.Error("ByID took a key from the file of another key")
	}
	if err := keys.Use("8899aabbccddeeff"); err == nil {
		t.Error("Use accepted a key that does not exist")
	}
	if m, err := Load(keys.File()); err != nil || m.ID() != first {
		t.Errorf("the file in use was changed: %v", err)
	}
}

func TestDropRemovesTheFileOfAKey(t *testing.T) {
	t.Parallel()
	keys, first := newKeys(t)
	second := mustAdd(t, keys).ID()
	if err := keys.Drop(second); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.ByID(second); !errors.Is(err, ErrWrongKey) {
		t.Errorf("after: %v, want ErrWrongKey", err)
	}
	if _, err := keys.ByID(first); err != nil {
		t.Error(err)
	}
	checkAlone(t, filepath.Dir(keys.File()))
}

func TestKeysOpenAndRewrapSecretsOfEveryKey(t *testing.T) {
	t.Parallel()
	keys, first := newKeys(t)
	old, err := keys.ByID(first)
	if err != nil {
		t.Fatal(err)
	}
	fresh, aad := mustAdd(t, keys), AAD("a")
	sealed := mustSeal(t, old, []byte("secret"), aad)
	moved, err := keys.Rewrap(sealed, aad, fresh)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"old": sealed, "new": moved} {
		if got, err := reload(keys).Open(b, aad); err != nil || string(got) != "secret" {
			t.Errorf("under the %s key: %q, %v", name, got, err)
		}
	}
	if id, err := KeyID(moved); err != nil || id != fresh.ID() {
		t.Errorf("KeyID = %s, %v; want %s", id, err, fresh.ID())
	}
	for _, bad := range [][]byte{nil, []byte("x"), make([]byte, 200)} {
		if _, err := keys.Open(bad, aad); !errors.Is(err, ErrTampered) {
			t.Errorf("Open(%x): %v, want ErrTampered", bad, err)
		}
		if _, err := keys.Rewrap(bad, aad, fresh); !errors.Is(err, ErrTampered) {
			t.Errorf("Rewrap(%x): %v, want ErrTampered", bad, err)
		}
	}
	if _, err := NewKeys(filepath.Join(t.TempDir(), "none")).Open(sealed, aad); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v, want fs.ErrNotExist", err)
	}
}

func TestConcurrentUseLosesNoKey(t *testing.T) {
	t.Parallel()
	keys, first := newKeys(t)
	ids := []string{first}
	for range 8 {
		ids = append(ids, mustAdd(t, keys).ID())
	}
	var all sync.WaitGroup
	for _, id := range ids[1:] {
		all.Go(func() {
			if err := reload(keys).Use(id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if _, err := reload(keys).ByID(id); err != nil {
			t.Errorf("key %s: %v", id, err)
		}
	}
}

func TestKeysPrintRedacted(t *testing.T) {
	t.Parallel()
	keys, id := newKeys(t)
	if _, err := keys.ByID(id); err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "keys", keys)
	for _, got := range []string{fmt.Sprint(keys), fmt.Sprintf("%#v", keys), fmt.Sprintf("%+v", keys), logged.String()} {
		if !strings.Contains(got, redacted) || strings.Contains(got, id) {
			t.Errorf("prints %s, want [redacted]", got)
		}
	}
}
