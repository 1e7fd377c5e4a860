package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrNoKeyring says that the database holds none of the service's keys yet.
var ErrNoKeyring = errors.New("the database holds no keys yet")

// Rotation is what a rotation of the master key did.
type Rotation struct {
	Old, New  string // ids of the keys
	Rewrapped int    // how many secrets were moved from one to the other
}

// RotateMaster makes a new master key, puts everything that is sealed under it,
// and puts it into the file in use. The secrets themselves do not change, so
// every API key, cursor and certificate stays good.
//
// The new key is on the disk before anything is sealed under it, everything
// moves in one transaction, and the key that the database needs is found by its
// id until the file in use has been replaced: there is no moment at which an
// interruption loses access.
func RotateMaster(ctx context.Context, s *store.Store, keys *seal.Keys) (Rotation, error) {
	old, err := masterID(ctx, s)
	if err != nil {
		return Rotation{}, err
	}
	if old == "" {
		return Rotation{}, ErrNoKeyring
	}
	// Told before anything is made, and no file is read within the transaction.
	if _, err := keys.ByID(old); err != nil {
		return Rotation{}, explain(err)
	}
	fresh, err := keys.Add()
	if err != nil {
		return Rotation{}, err
	}
	n, err := rewrap(ctx, s, keys, fresh)
	if err != nil {
		// Where the outcome is not known, everything may be under the new key.
		if !errors.Is(err, store.ErrUnavailable) {
			err = errors.Join(err, keys.Drop(fresh.ID()))
		}
		return Rotation{}, explain(err)
	}
	done := Rotation{Old: old, New: fresh.ID(), Rewrapped: n}
	if err := keys.Use(done.New); err != nil {
		return done, fmt.Errorf("everything is under the new master key, which is in %s; %s still has the old one, and the next command replaces it: %w", keys.FileOf(done.New), keys.File(), err)
	}
	return done, nil
}

// FinishRotation puts the master key that the database needs into the file in
// use, if a rotation was interrupted before it did, or a database from before a
// rotation was restored. It tells whether it had to.
func FinishRotation(ctx context.Context, s *store.Store, keys *seal.Keys) (bool, error) {
	has := ""
	switch m, err := seal.Load(keys.File()); {
	case err == nil:
		has = m.ID()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	// Read after the file: a rotation that ends in between has changed both.
	needs, err := masterID(ctx, s)
	if err != nil || needs == "" || needs == has {
		return false, err
	}
	return true, keys.Use(needs)
}

// rewrap moves everything that is sealed to another master key.
func rewrap(ctx context.Context, s *store.Store, keys *seal.Keys, to *seal.MasterKey) (n int, err error) {
	err = s.Update(ctx, func(tx *store.Tx) error {
		secrets, err := tx.LockSecrets(ctx)
		if err != nil {
			return err
		}
		for _, secret := range secrets {
			aad := keyAAD(secret.Kind, secret.Version)
			if secret.Sealed, err = keys.Rewrap(secret.Sealed, aad, to); err != nil {
				return fmt.Errorf("access: rewrap %s %d: %w", secret.Kind, secret.Version, err)
			}
			if err := tx.RewrapSecret(ctx, secret); err != nil {
				return err
			}
		}
		n = len(secrets)
		for _, move := range []func(context.Context, *store.Tx, rewrapper) (int, error){
			moveCertificates, moveEndpoints, moveSources, moveAnswers,
		} {
			moved, err := move(ctx, tx, func(sealed, aad []byte) ([]byte, error) { return keys.Rewrap(sealed, aad, to) })
			if err != nil {
				return err
			}
			n += moved
		}
		return nil
	})
	return n, err
}

// masterKey is the key to seal under: the one that the service's keys are
// under, and on an empty database that of the file in use.
func masterKey(ctx context.Context, s *store.Store, keys *seal.Keys) (*seal.MasterKey, error) {
	id, err := masterID(ctx, s)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return keys.InUse()
	}
	m, err := keys.ByID(id)
	return m, explain(err)
}

// masterID is the id of the master key that the service's keys are sealed
// under, empty when there are none.
func masterID(ctx context.Context, from interface {
	Secrets(ctx context.Context, kind string) ([]store.Secret, error)
}) (string, error) {
	stored, err := from.Secrets(ctx, kindPepper)
	if err != nil || len(stored) == 0 {
		return "", err
	}
	id, err := seal.KeyID(stored[len(stored)-1].Sealed)
	if err != nil {
		return "", fmt.Errorf("access: %s: %w", kindPepper, err)
	}
	return id, nil
}

// explain tells the operator what to do about another master key.
func explain(err error) error {
	if !errors.Is(err, seal.ErrWrongKey) {
		return err
	}
	return fmt.Errorf("access: the database needs another master key: name the file that it was made with or last rotated to (--master-key or --data): %w", err)
}
