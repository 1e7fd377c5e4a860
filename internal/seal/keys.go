package seal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Keys are the master keys of a service. The one in use has the file that the
// operator names. A rotation leaves each key that it makes or replaces beside
// it, in a file whose name ends in the key's id, and no such file is ever
// changed or replaced: whichever key something is sealed under is found,
// wherever a rotation was interrupted and however many run together. Keys print
// as [redacted]. Use them by pointer, from as many goroutines as needed.
type Keys struct {
	path string

	mu    sync.Mutex
	known map[string]*MasterKey // an id never names another key, so what was read stays good
}

// NewKeys returns the master keys whose file in use is at path. It reads
// nothing yet.
func NewKeys(path string) *Keys { return &Keys{path: path, known: make(map[string]*MasterKey)} }

// String returns [redacted].
func (k *Keys) String() string { return redacted }

// GoString returns [redacted].
func (k *Keys) GoString() string { return redacted }

// LogValue returns the string [redacted].
func (k *Keys) LogValue() slog.Value { return slog.StringValue(redacted) }

// File returns the path of the file in use.
func (k *Keys) File() string { return k.path }

// FileOf returns the path where a rotation keeps the key with an id.
func (k *Keys) FileOf(id string) string { return k.path + "." + id }

// InUse loads the key in the file in use, and makes one when there is none.
func (k *Keys) InUse() (*MasterKey, error) { return LoadOrCreate(k.path) }

// ByID returns the key with an id, from the file in use or from those of
// rotations. The error is ErrWrongKey when the file in use has another key and
// no other file has this one, and fs.ErrNotExist when there is no file at all.
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
			err = fmt.Errorf("%w: it needs the key %s, and %s holds %s", ErrWrongKey, id, k.path, m.ID())
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
		return nil, fmt.Errorf("seal: %s holds the key %s, which is not that of its name", k.FileOf(id), m.ID())
	}
	k.known[id] = m
	return m, nil
}

// Open returns the secret in sealed bytes, with whichever key they name.
func (k *Keys) Open(sealed, aad []byte) ([]byte, error) {
	m, err := k.sealer(sealed)
	if err != nil {
		return nil, err
	}
	return m.Open(sealed, aad)
}

// Rewrap returns sealed bytes that open with the master key to instead of the
// one that they name.
func (k *Keys) Rewrap(sealed, aad []byte, to *MasterKey) ([]byte, error) {
	m, err := k.sealer(sealed)
	if err != nil {
		return nil, err
	}
	return m.Rewrap(sealed, aad, to)
}

func (k *Keys) sealer(sealed []byte) (*MasterKey, error) {
	id, err := KeyID(sealed)
	if err != nil {
		return nil, err
	}
	return k.ByID(id)
}

// Add makes a key in a file of its own, durably, and changes nothing else:
// nothing is sealed under it yet.
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

// Use puts the key with an id into the file in use, at once and durably. The
// key that was there is kept in a file of its own first.
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
	if err := place(k.path, text, os.Rename); err != nil {
		return err
	}
	return syncDir(filepath.Dir(k.path))
}

// Drop removes the file of a key that nothing was sealed under.
func (k *Keys) Drop(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id)
	if err := os.Remove(k.FileOf(id)); err != nil {
		return fmt.Errorf("seal: drop master key: %w", err)
	}
	return nil
}

func (k *Keys) store(text, id string) error {
	if err := place(k.FileOf(id), text, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(k.path))
}
