// Package access manages and checks credentials, and it manages the secrets of the
// service: its own keys, the private keys of certificates, and other secrets of
// taxpayers. All of them are stored sealed under the master key.
package access

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Keyring holds the decrypted keys of the service. Each key is random and has a
// version. The newest version is used for new digests, cursors and tokens; older
// versions still check those that they have made. Run loads the versions that other
// processes add. A Keyring is safe for concurrent use.
type Keyring struct {
	store *store.Store
	keys  *seal.Keys
	set   atomic.Pointer[keySet]
}

// keySet is the keys of one reading of the database. It never changes.
type keySet struct {
	stored    []store.Secret // the rows that were read
	peppers   map[int64][]byte
	newest    int64               // the newest version of the peppers
	cursors   []versionedKey      // the oldest first
	receivers []versionedKey      // the oldest first
	audit     []versionedKey      // the oldest first
	bound     map[int64]time.Time // since when all credentials under a version of the pepper have a binding
}

const (
	kindPepper   = "pepper"
	kindCursor   = "cursor"
	kindReceiver = "receiver"
	kindAudit    = "audit"
	keySize      = 32

	// reloadEvery is how often a running node looks for new versions of keys.
	reloadEvery = 2 * time.Second
	// activeAfter is the age at which a new version begins to make cursors and tokens. By
	// then every node has loaded it.
	activeAfter = 5 * time.Second
	// How long older versions are accepted after the next version was added. A client may
	// continue a list for 30 days; a token of the receiver is valid for an hour.
	cursorTime   = 30 * 24 * time.Hour
	receiverTime = 2 * time.Hour
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
	return k, k.Reload(ctx)
}

// ReadKeyring decrypts the keys of the service and changes nothing. It fails with
// ErrNoKeyring when the database has no keys, and with fs.ErrNotExist when the master key
// file does not exist.
func ReadKeyring(ctx context.Context, s *store.Store, keys *seal.Keys) (*Keyring, error) {
	id, err := MasterKeyID(ctx, s)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, ErrNoKeyring
	}
	if _, err := keys.ByID(id); err != nil {
		return nil, explainWrongKey(err)
	}
	k := &Keyring{store: s, keys: keys}
	return k, k.load(ctx)
}

// Run reloads the keyring every two seconds until ctx ends, so that new versions of keys
// take effect on all nodes within 5 seconds. After an error the keys that it has stay
// valid.
func (k *Keyring) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := k.Reload(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			last = ""
		case err.Error() != last:
			last = err.Error()
			log.Warn("Cannot load the keys of the service. It continues with those that it has, and tries again every 2 seconds.", "error", last)
		}
	}
}

// Reload reads the keys again. On an error the keyring keeps the keys that it has.
func (k *Keyring) Reload(ctx context.Context) error {
	if err := k.load(ctx); err != nil {
		return err
	}
	return k.bindEarlier(ctx)
}

// load reads the keys from the database and decrypts them.
func (k *Keyring) load(ctx context.Context) error {
	stored, err := k.store.AllSecrets(ctx)
	if err != nil {
		return err
	}
	if before := k.set.Load(); before != nil && slices.EqualFunc(before.stored, stored, sameSecret) {
		return nil
	}
	set := &keySet{stored: stored, peppers: make(map[int64][]byte), bound: make(map[int64]time.Time)}
	for _, secret := range stored {
		key, err := k.keys.Open(secret.Sealed, keyAAD(secret.Kind, secret.Version))
		if err != nil {
			return explainWrongKey(fmt.Errorf("access: open %s %d: %w", secret.Kind, secret.Version, err))
		}
		switch secret.Kind {
		case kindPepper:
			set.peppers[secret.Version], set.newest = key, secret.Version
		case kindCursor:
			set.cursors = append(set.cursors, versionedKey{key, secret.CreatedAt})
		case kindReceiver:
			set.receivers = append(set.receivers, versionedKey{key, secret.CreatedAt})
		case kindAudit:
			set.audit = append(set.audit, versionedKey{key, secret.CreatedAt})
		case kindBound:
			if set.bound[secret.Version], err = readBoundMark(key); err != nil {
				return err
			}
		}
	}
	k.set.Store(set)
	return nil
}

func sameSecret(a, b store.Secret) bool {
	return a.Kind == b.Kind && a.Version == b.Version && a.CreatedAt.Equal(b.CreatedAt) && bytes.Equal(a.Sealed, b.Sealed)
}

// Cursors returns the keys that authenticate cursors. The first one makes new cursors; all
// of them are accepted.
func (k *Keyring) Cursors() [][]byte { return usable(k.set.Load().cursors, k.store.Now(), cursorTime) }

// Receivers returns the keys that authenticate the seeds and tokens of package receiver.
// The first one makes new ones; all of them are accepted.
func (k *Keyring) Receivers() [][]byte {
	return usable(k.set.Load().receivers, k.store.Now(), receiverTime)
}

// Audit returns the key that signs checkpoints of the audit log.
func (k *Keyring) Audit() ed25519.PrivateKey {
	audit := k.set.Load().audit
	return ed25519.NewKeyFromSeed(audit[len(audit)-1].key)
}

// VerifyCheckpoint fails with audit.ErrCheckpoint unless a key of this service has signed
// the checkpoint.
func (k *Keyring) VerifyCheckpoint(p audit.Checkpoint) error {
	for _, one := range k.set.Load().audit {
		public, ok := ed25519.NewKeyFromSeed(one.key).Public().(ed25519.PublicKey)
		if ok && p.Verify(public) == nil {
			return nil
		}
	}
	return audit.ErrCheckpoint
}

type versionedKey struct {
	key       []byte
	createdAt time.Time
}

// usable returns the keys that are accepted now. all are the versions, the oldest first. A
// version is accepted until its successor has the age life. The first key of the result is
// the newest one that every node has loaded; a newer version follows, which other nodes
// may use already.
func usable(all []versionedKey, now time.Time, life time.Duration) [][]byte {
	var active, fresh [][]byte // the newest first
	for i := len(all) - 1; i >= 0; i-- {
		switch {
		case i < len(all)-1 && now.Sub(all[i+1].createdAt) >= life:
		case i > 0 && now.Sub(all[i].createdAt) < activeAfter:
			fresh = append(fresh, all[i].key)
		default:
			active = append(active, all[i].key)
		}
	}
	return append(active, fresh...)
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
