package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
)

// Keys are the master keys of a service. The file that the operator configures holds
// the key in use. A rotation keeps each key that it makes or replaces in a separate
// file in the same folder, with a name that ends in the key's id. Such a file is never changed or
// replaced, so the key of every sealed secret can be found, even after an
// interrupted rotation or several rotations at the same time. Keys print as
// [redacted]. Use Keys by pointer; it is safe for concurrent use.
type Keys struct {
	path string

	mu    sync.Mutex
	known map[string]*MasterKey // an id never names another key, so entries never expire
}

// NewKeys returns the master keys whose file in use is at path. It does not read the
// file yet.
func NewKeys(path string) *Keys { return &Keys{path: path, known: make(map[string]*MasterKey)} }

// String returns [redacted].
func (k *Keys) String() string { return redacted }

// GoString returns [redacted].
func (k *Keys) GoString() string { return redacted }

// LogValue returns the string [redacted].
func (k *Keys) LogValue() slog.Value { return slog.StringValue(redacted) }

// File returns the path of the file in use.
func (k *Keys) File() string { return k.path }

// FileOf returns the path of the file in which a rotation keeps the key with this
// id.
func (k *Keys) FileOf(id string) string { return k.path + "." + id }

// InUse loads the key from the file in use, and creates the file with a new key when
// it does not exist.
func (k *Keys) InUse() (*MasterKey, error) { return LoadOrCreate(k.path) }

// ByID returns the key with this id, from the file in use or from a file of a
// rotation. It fails with ErrWrongKey when the file in use holds another key and no
// other file holds this one, and with fs.ErrNotExist when there is no file at all.
func (k *Keys) ByID(id string) (*MasterKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m := k.known[id]; m != nil {
		return m, nil
	}
	m, err := Load(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || m.ID() != id {
		if err == nil {
			err = fmt.Errorf("%w: it needs the key %s, but %s holds the key %s", ErrWrongKey, id, k.path, m.ID())
		}
		kept, errKept := Load(k.FileOf(id))
		if errors.Is(errKept, fs.ErrNotExist) {
			return nil, err
		}
		if errKept != nil {
			return nil, errKept
		}
		m = kept
	}
	if m.ID() != id {
		return nil, fmt.Errorf("seal: %s holds the key %s, which is not the key in its name", k.FileOf(id), m.ID())
	}
	k.known[id] = m
	return m, nil
}

// Open decrypts sealed bytes with the key that they name.
func (k *Keys) Open(sealed, aad []byte) ([]byte, error) {
	m, err := k.sealingKey(sealed)
	if err != nil {
		return nil, err
	}
	return m.Open(sealed, aad)
}

// Rewrap returns sealed bytes that open with the master key to instead of the key
// that they name.
func (k *Keys) Rewrap(sealed, aad []byte, to *MasterKey) ([]byte, error) {
	m, err := k.sealingKey(sealed)
	if err != nil {
		return nil, err
	}
	return m.Rewrap(sealed, aad, to)
}

// sealingKey returns the key that sealed bytes name.
func (k *Keys) sealingKey(sealed []byte) (*MasterKey, error) {
	id, err := KeyID(sealed)
	if err != nil {
		return nil, err
	}
	return k.ByID(id)
}

// Add makes a new key and writes it durably to its own file. The key in use stays
// the same.
func (k *Keys) Add() (*MasterKey, error) {
	text, err := newKeyText()
	if err != nil {
		return nil, fmt.Errorf("seal: make master key: %w", err)
	}
	m, err := parseFile(text)
	if err != nil {
		return nil, err
	}
	if err := k.store(text, m.ID()); err != nil {
		return nil, fmt.Errorf("seal: make master key: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[m.ID()] = m
	return m, nil
}

// Use writes the key with this id to the file in use, atomically and durably. It
// first keeps the key that was in use in its own file.
func (k *Keys) Use(id string) error {
	if err := k.use(id); err != nil {
		return fmt.Errorf("seal: put master key in use: %w", err)
	}
	return nil
}

func (k *Keys) use(id string) error {
	text, _, err := readKey(k.FileOf(id))
	if err != nil {
		return err
	}
	before, m, err := readKey(k.path)
	switch {
	case err == nil && m.ID() == id:
		return nil
	case err == nil:
		err = k.store(before, m.ID())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return err
	}
	return atomicfile.Replace(k.path, text)
}

// Drop removes the file of a key. Call it only when no secret is sealed under the
// key.
func (k *Keys) Drop(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id)
	if err := os.Remove(k.FileOf(id)); err != nil {
		return fmt.Errorf("seal: drop master key: %w", err)
	}
	return nil
}

// store writes a key to its own file, unless the file exists.
func (k *Keys) store(text, id string) error {
	err := atomicfile.Create(k.FileOf(id), text)
	if errors.Is(err, fs.ErrExist) {
		return atomicfile.SyncDir(filepath.Dir(k.path)) // its writer may not have synced yet
	}
	return err
}
