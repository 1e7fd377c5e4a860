package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Kinds returns the kinds of keys that can be rotated, in a new slice.
func Kinds() []string { return []string{kindPepper, kindCursor, kindReceiver, kindAudit} }

// KeyVersion is one version of a key of the service.
type KeyVersion struct {
	Kind        string
	Version     int64
	CreatedAt   time.Time
	Newest      bool
	Credentials int // usable credentials that need it; only a pepper has any
}

// ErrKeyNeeded means that a version of a key cannot be dropped, because something that is
// still valid needs it.
var ErrKeyNeeded = lang.Errorf("the key is still needed", "la clave todavía se necesita")

// KeyVersions lists the keys of the service, the oldest version of each kind first.
func KeyVersions(ctx context.Context, s *store.Store) ([]KeyVersion, error) {
	stored, err := s.AllSecrets(ctx)
	if err != nil {
		return nil, err
	}
	credentials, err := s.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	var all []KeyVersion
	for _, kind := range Kinds() {
		for _, secret := range stored {
			if secret.Kind == kind {
				all = append(all, KeyVersion{Kind: kind, Version: secret.Version, CreatedAt: secret.CreatedAt})
			}
		}
		if len(all) > 0 && all[len(all)-1].Kind == kind {
			all[len(all)-1].Newest = true
		}
	}
	for i := range all {
		if all[i].Kind == kindPepper {
			all[i].Credentials = usableWith(credentials, all[i].Version, s.Now())
		}
	}
	return all, nil
}

// usableWith counts the credentials that can be used and have a version of the pepper.
func usableWith(all []store.Credential, pepper int64, now time.Time) (count int) {
	for _, c := range all {
		if c.PepperVersion == pepper && c.Live(now) {
			count++
		}
	}
	return count
}

// RotateKey adds a new version of a key. Every running node loads it within seconds. Older
// versions stay valid, unless drop is true: then they are deleted, and what they have made
// is no longer accepted. RotateKey fails with ErrKeyNeeded when drop is true and usable
// credentials or checkpoints need an older version.
func RotateKey(ctx context.Context, s *store.Store, keys *seal.Keys, kind string, drop bool) (KeyVersion, error) {
	if !slices.Contains(Kinds(), kind) {
		return KeyVersion{}, fmt.Errorf("there is no key %s", kind)
	}
	for {
		master, err := masterKey(ctx, s, keys)
		if err != nil {
			return KeyVersion{}, err
		}
		all, err := KeyVersions(ctx, s)
		if err != nil {
			return KeyVersion{}, err
		}
		all = slices.DeleteFunc(all, func(v KeyVersion) bool { return v.Kind != kind })
		if len(all) == 0 {
			return KeyVersion{}, ErrNoKeyring
		}
		made := KeyVersion{Kind: kind, Version: all[len(all)-1].Version + 1, CreatedAt: s.Now(), Newest: true}
		secret, err := newKey(master, kind, made.Version)
		if err != nil {
			return KeyVersion{}, err
		}
		err = s.Update(ctx, func(tx *store.Tx) error {
			if err := lockMaster(ctx, tx, master); err != nil {
				return err
			}
			return rotateKey(ctx, tx, secret, all, drop, s.Now())
		})
		if !errors.Is(err, errRotated) {
			return made, err
		}
	}
}

// rotateKey stores a new version. It fails with errRotated when another process has added
// the same version.
func rotateKey(ctx context.Context, tx *store.Tx, secret store.Secret, before []KeyVersion, drop bool, now time.Time) error {
	stored, err := tx.Secrets(ctx, secret.Kind)
	if err != nil {
		return err
	}
	if len(stored) != len(before) || stored[len(stored)-1].Version+1 != secret.Version {
		return errRotated
	}
	if err := tx.AddSecret(ctx, secret); err != nil {
		return err
	}
	after := map[string]any{"version": secret.Version}
	if drop {
		after["dropped"] = len(before)
		for _, old := range before {
			if err := dropKey(ctx, tx, old, now); err != nil {
				return err
			}
		}
	}
	return tx.Audit(ctx, store.AuditEntry{Action: "key.rotate", Object: "key:" + secret.Kind, After: after})
}

// DropKey deletes an old version of a key. It fails with store.ErrNotFound when there is
// no such version, and with ErrKeyNeeded when it is the newest one, or when usable
// credentials or checkpoints need it.
func DropKey(ctx context.Context, s *store.Store, kind string, version int64) error {
	all, err := KeyVersions(ctx, s)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(v KeyVersion) bool { return v.Kind == kind && v.Version == version })
	if i < 0 {
		return store.ErrNotFound
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockSecrets(ctx); err != nil {
			return err
		}
		if err := dropKey(ctx, tx, all[i], s.Now()); err != nil {
			return err
		}
		return tx.Audit(ctx, store.AuditEntry{Action: "key.drop", Object: "key:" + kind, After: map[string]any{"version": version}})
	})
}

// dropKey deletes a version of a key, and the mark of a pepper. The transaction has locked
// the secrets, so no credential is added meanwhile; dropKey counts them itself, because one
// may have been added since the versions were listed.
func dropKey(ctx context.Context, tx *store.Tx, old KeyVersion, now time.Time) error {
	newest, err := tx.Secrets(ctx, old.Kind)
	needed := 0
	if err == nil && old.Kind == kindPepper {
		var credentials []store.Credential
		credentials, err = tx.Credentials(ctx)
		needed = usableWith(credentials, old.Version, now)
	}
	switch {
	case err != nil:
		return err
	case len(newest) == 0 || newest[len(newest)-1].Version == old.Version:
		return lang.Errorf("%s: it is the newest version; rotate it first", "%s: es la versión más reciente; rótela primero", ErrKeyNeeded)
	case old.Kind == kindAudit:
		return lang.Errorf("%s: it verifies the checkpoints that it has signed", "%s: verifica los puntos de control que firmó", ErrKeyNeeded)
	case needed > 0:
		return lang.Errorf("%s: %d usable credentials have pepper %d; rotate or revoke each of them first (fiscalhub credential list)",
			"%s: cantidad de credenciales utilizables: %d, con la versión %d de pepper; rote o revoque primero cada una (fiscalhub credential list)", ErrKeyNeeded, needed, old.Version)
	}
	if old.Kind == kindPepper {
		if err := tx.DropSecret(ctx, kindBound, old.Version); err != nil {
			return err
		}
	}
	return tx.DropSecret(ctx, old.Kind, old.Version)
}
