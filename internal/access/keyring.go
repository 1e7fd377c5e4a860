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
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Keyring holds the decrypted keys of the service. Each key is random and has a
// version. The newest version is used for new digests, cursors and tokens; older
// versions still check those that they have made. A Keyring is safe for concurrent use.
type Keyring struct {
	store *store.Store
	keys  *seal.Keys
	set   atomic.Pointer[keySet]
}

// keySet is the keys of one reading of the database. It never changes.
type keySet struct {
	peppers  map[int64][]byte
	newest   int64    // the newest version of the peppers
	cursors  [][]byte // the newest first
	receiver []byte   // the newest
	audit    []versionedKey
	bound    map[int64]time.Time // since when all credentials under a version of the pepper have a binding
}

const (
	kindPepper   = "pepper"
	kindCursor   = "cursor"
	kindReceiver = "receiver"
	kindAudit    = "audit"
	keySize      = 32
)

// LoadKeyring decrypts the keys of the service. On an empty database it creates them,
// and the master key too if its file does not exist. It binds the credentials that
// programs of earlier versions have stored. It fails with fs.ErrNotExist when the database
// has keys but the master key file does not exist.
func LoadKeyring(ctx context.Context, s *store.Store, keys *seal.Keys) (*Keyring, error) {
	master, err := masterKey(ctx, s, keys)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{kindPepper, kindCursor, kindReceiver, kindAudit} {
		stored, err := s.Secrets(ctx, kind)
		if err != nil {
			return nil, err
		}
		if len(stored) > 0 {
			continue
		}
		// When another node stores a key first, this one is dropped.
		if err := addKey(ctx, s, master, kind, 1); err != nil {
			return nil, err
		}
	}
	k := &Keyring{store: s, keys: keys}
	if err := k.load(ctx); err != nil {
		return nil, err
	}
	return k, k.bindEarlier(ctx)
}

// load reads the keys from the database and decrypts them.
func (k *Keyring) load(ctx context.Context) error {
	stored, err := k.store.AllSecrets(ctx)
	if err != nil {
		return err
	}
	set := &keySet{peppers: make(map[int64][]byte), bound: make(map[int64]time.Time)}
	for _, secret := range stored {
		key, err := k.keys.Open(secret.Sealed, keyAAD(secret.Kind, secret.Version))
		if err != nil {
			return explainWrongKey(fmt.Errorf("access: open %s %d: %w", secret.Kind, secret.Version, err))
		}
		switch secret.Kind {
		case kindPepper:
			set.peppers[secret.Version], set.newest = key, secret.Version
		case kindCursor:
			set.cursors = append([][]byte{key}, set.cursors...)
		case kindReceiver:
			set.receiver = key
		case kindAudit:
			set.audit = append(set.audit, versionedKey{secret.Version, key})
		case kindBound:
			if set.bound[secret.Version], err = readBoundMark(key); err != nil {
				return err
			}
		}
	}
	k.set.Store(set)
	return nil
}

// Cursors returns the keys that authenticate cursors, the newest first.
func (k *Keyring) Cursors() [][]byte { return k.set.Load().cursors }

// Receiver returns the key that authenticates the seeds and tokens of package
// receiver.
func (k *Keyring) Receiver() []byte { return k.set.Load().receiver }

// Audit returns the key that signs checkpoints of the audit log.
func (k *Keyring) Audit() ed25519.PrivateKey {
	audit := k.set.Load().audit
	return ed25519.NewKeyFromSeed(audit[len(audit)-1].key)
}

type versionedKey struct {
	version int64
	key     []byte
}

// addKey makes a random key and stores it, unless this version exists.
func addKey(ctx context.Context, s *store.Store, master *seal.MasterKey, kind string, version int64) error {
	sealed, err := newKey(master, kind, version)
	if err != nil {
		return err
	}
	return s.AddSecret(ctx, sealed)
}

// newKey makes a random key and seals it.
func newKey(master *seal.MasterKey, kind string, version int64) (store.Secret, error) {
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return store.Secret{}, fmt.Errorf("access: make %s: %w", kind, err)
	}
	if kind == kindPepper {
		key = append([]byte(boundPepper), key...)
	}
	return sealKey(master, kind, version, key)
}

func sealKey(master *seal.MasterKey, kind string, version int64, key []byte) (store.Secret, error) {
	sealed, err := master.Seal(key, keyAAD(kind, version))
	if err != nil {
		return store.Secret{}, fmt.Errorf("access: seal %s: %w", kind, err)
	}
	return store.Secret{Kind: kind, Version: version, Sealed: sealed}, nil
}

// keyAAD binds a sealed key to its row. The keys of the service belong to no taxpayer.
func keyAAD(kind string, version int64) []byte {
	return seal.AAD("", "", kind, "", strconv.FormatInt(version, 10))
}
