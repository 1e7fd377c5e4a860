// Package access decides who may call: it owns the service's own keys, the life
// of credentials, and their authentication.
package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Keyring holds the service's own keys in the clear. They are random, stored
// sealed under the master key, and versioned: a new version serves from then
// on, older ones stay good for what they made.
type Keyring struct {
	peppers  map[int64][]byte
	newest   int64
	cursors  [][]byte // the newest first
	receiver []byte   // the newest
}

const (
	kindPepper   = "pepper"
	kindCursor   = "cursor"
	kindReceiver = "receiver"
	keySize      = 32
)

// LoadKeyring opens the service's keys, and makes them on an empty database,
// together with the master key if there is none. The error is fs.ErrNotExist
// when the database has keys and there is no master key file.
func LoadKeyring(ctx context.Context, s *store.Store, keys *seal.Keys) (*Keyring, error) {
	master, err := masterKey(ctx, s, keys)
	if err != nil {
		return nil, err
	}
	peppers, err := loadKeys(ctx, s, keys, master, kindPepper)
	if err != nil {
		return nil, err
	}
	cursors, err := loadKeys(ctx, s, keys, master, kindCursor)
	if err != nil {
		return nil, err
	}
	receivers, err := loadKeys(ctx, s, keys, master, kindReceiver)
	if err != nil {
		return nil, err
	}
	ring := &Keyring{peppers: make(map[int64][]byte), receiver: receivers[len(receivers)-1].key}
	for _, k := range peppers {
		ring.peppers[k.version], ring.newest = k.key, k.version
	}
	for _, k := range cursors {
		ring.cursors = append([][]byte{k.key}, ring.cursors...)
	}
	return ring, nil
}

// Cursors are the keys that cursors are authenticated with, the newest first.
func (k *Keyring) Cursors() [][]byte { return k.cursors }

// Receiver is the key that seeds and tokens for other taxpayers are
// authenticated with.
func (k *Keyring) Receiver() []byte { return k.receiver }

type versionedKey struct {
	version int64
	key     []byte
}

func loadKeys(ctx context.Context, s *store.Store, keys *seal.Keys, master *seal.MasterKey, kind string) ([]versionedKey, error) {
	stored, err := s.Secrets(ctx, kind)
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		if err := addKey(ctx, s, master, kind, 1); err != nil {
			return nil, err
		}
		// Another node may have been first; what is stored is what counts.
		if stored, err = s.Secrets(ctx, kind); err != nil {
			return nil, err
		}
	}
	opened := make([]versionedKey, 0, len(stored))
	for _, secret := range stored {
		key, err := keys.Open(secret.Sealed, keyAAD(kind, secret.Version))
		if err != nil {
			return nil, explain(fmt.Errorf("access: open %s %d: %w", kind, secret.Version, err))
		}
		opened = append(opened, versionedKey{secret.Version, key})
	}
	return opened, nil
}

func addKey(ctx context.Context, s *store.Store, master *seal.MasterKey, kind string, version int64) error {
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("access: make %s: %w", kind, err)
	}
	sealed, err := master.Seal(key, keyAAD(kind, version))
	if err != nil {
		return fmt.Errorf("access: seal %s: %w", kind, err)
	}
	return s.AddSecret(ctx, store.Secret{Kind: kind, Version: version, Sealed: sealed})
}

// keyAAD binds a sealed key to its row. These belong to no taxpayer.
func keyAAD(kind string, version int64) []byte {
	return seal.AAD("", "", kind, "", strconv.FormatInt(version, 10))
}
