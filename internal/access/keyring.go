// Package access manages and checks credentials, and it manages the secrets of the
// service: its own keys, the private keys of certificates, and other secrets of
// taxpayers. All of them are stored sealed under the master key.
package access

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Keyring holds the decrypted keys of the service. Each key is random and has a
// version. The newest version is used for new digests, cursors and tokens; older
// versions still check those that they have made.
type Keyring struct {
	peppers  map[int64][]byte
	newest   int64    // the newest version of the peppers
	cursors  [][]byte // the newest first
	receiver []byte   // the newest
	audit    []versionedKey
}

const (
	kindPepper   = "pepper"
	kindCursor   = "cursor"
	kindReceiver = "receiver"
	kindAudit    = "audit"
	keySize      = 32
)

// LoadKeyring decrypts the keys of the service. On an empty database it creates them,
// and the master key too if its file does not exist. It fails with fs.ErrNotExist when
// the database has keys but the master key file does not exist.
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
	audits, err := loadKeys(ctx, s, keys, master, kindAudit)
	if err != nil {
		return nil, err
	}
	ring := &Keyring{peppers: make(map[int64][]byte), receiver: receivers[len(receivers)-1].key, audit: audits}
	for _, k := range peppers {
		ring.peppers[k.version], ring.newest = k.key, k.version
	}
	for _, k := range cursors {
		ring.cursors = append([][]byte{k.key}, ring.cursors...)
	}
	return ring, nil
}

// Cursors returns the keys that authenticate cursors, the newest first.
func (k *Keyring) Cursors() [][]byte { return k.cursors }

// Receiver returns the key that authenticates the seeds and tokens of package
// receiver.
func (k *Keyring) Receiver() []byte { return k.receiver }

// Audit returns the key that signs checkpoints of the audit log.
func (k *Keyring) Audit() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(k.audit[len(k.audit)-1].key)
}

type versionedKey struct {
	version int64
	key     []byte
}

// loadKeys decrypts the keys of a kind, the oldest first. It creates the first one when
// there is none.
func loadKeys(ctx context.Context, s *store.Store, keys *seal.Keys, master *seal.MasterKey, kind string) ([]versionedKey, error) {
	stored, err := s.Secrets(ctx, kind)
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		if err := addKey(ctx, s, master, kind, 1); err != nil {
			return nil, err
		}
		// Another node may have stored a key first: read it again.
		if stored, err = s.Secrets(ctx, kind); err != nil {
			return nil, err
		}
	}
	opened := make([]versionedKey, 0, len(stored))
	for _, secret := range stored {
		key, err := keys.Open(secret.Sealed, keyAAD(kind, secret.Version))
		if err != nil {
			return nil, explainWrongKey(fmt.Errorf("access: open %s %d: %w", kind, secret.Version, err))
		}
		opened = append(opened, versionedKey{secret.Version, key})
	}
	return opened, nil
}

// addKey makes a random key and stores it, unless this version exists.
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

// keyAAD binds a sealed key to its row. The keys of the service belong to no taxpayer.
func keyAAD(kind string, version int64) []byte {
	return seal.AAD("", "", kind, "", strconv.FormatInt(version, 10))
}
