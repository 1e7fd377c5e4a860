package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrNoKeyring means that the database does not contain the keys of the service yet.
var ErrNoKeyring = errors.New("the database contains no keys yet")

// Rotation is the result of a rotation of the master key.
type Rotation struct {
	Old, New  string // ids of the keys
	Rewrapped int    // the number of secrets that were moved to the new key
}

// RotateMaster makes a new master key, moves all sealed secrets to it, and writes it to
// the file in use. The secrets themselves do not change, so API keys, cursors and
// certificates stay valid.
//
// An interruption never loses access: the new key is on the disk before the first
// secret is sealed under it, one transaction moves all secrets, and the key that the
// database needs is found by its id until the file in use is replaced.
//
// RotateMaster calls progress, which may be nil, with the number of secrets that are moved
// and the number of all.
func RotateMaster(ctx context.Context, s *store.Store, keys *seal.Keys, progress func(done, total int)) (Rotation, error) {
	old, err := masterID(ctx, s)
	if err != nil {
		return Rotation{}, err
	}
	if old == "" {
		return Rotation{}, ErrNoKeyring
	}
	// Fail before a new key is made, and read no file within the transaction.
	if _, err := keys.ByID(old); err != nil {
		return Rotation{}, explainWrongKey(err)
	}
	fresh, err := keys.Add()
	if err != nil {
		return Rotation{}, err
	}
	n, err := rewrap(ctx, s, keys, fresh, progress)
	if err != nil {
		// When the outcome of the transaction is unknown, the secrets may be under the
		// new key: keep it. An interruption before the commit has changed nothing.
		interrupted := ctx.Err() != nil && !errors.Is(err, store.ErrOutcomeUnknown)
		if interrupted || !errors.Is(err, store.ErrUnavailable) {
			err = errors.Join(err, keys.Drop(fresh.ID()))
		}
		return Rotation{}, explainWrongKey(err)
	}
	done := Rotation{Old: old, New: fresh.ID(), Rewrapped: n}
	if err := keys.Use(done.New); err != nil {
		return done, fmt.Errorf("all secrets are under the new master key in %s, but %s still holds the old one; the next command replaces it: %w", keys.FileOf(done.New), keys.File(), err)
	}
	return done, nil
}

// FinishRotation writes the master key that the database needs to the file in use. This
// is necessary after an interrupted rotation and after the restore of a database from
// before a rotation. FinishRotation reports whether it changed the file.
func FinishRotation(ctx context.Context, s *store.Store, keys *seal.Keys) (bool, error) {
	has := ""
	switch m, err := seal.Load(keys.File()); {
	case err == nil:
		has = m.ID()
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	// Read the database after the file: a rotation that ends in between changes both.
	needs, err := masterID(ctx, s)
	if err != nil || needs == "" || needs == has {
		return false, err
	}
	return true, keys.Use(needs)
}

// rewrap moves all sealed secrets to another master key, in one transaction, and returns
// their number.
func rewrap(ctx context.Context, s *store.Store, keys *seal.Keys, to *seal.MasterKey, progress func(done, total int)) (n int, err error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	err = s.Update(ctx, func(tx *store.Tx) error {
		var all []move
		for _, list := range []func(context.Context, *store.Tx, rewrapper) ([]move, error){
			keyMoves, certificateMoves, endpointMoves, sourceMoves, answerMoves, secondFactorMoves, // the keys first: this locks them
		} {
			some, err := list(ctx, tx, func(sealed, aad []byte) ([]byte, error) { return keys.Rewrap(sealed, aad, to) })
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		for i, one := range all {
			progress(i, len(all))
			if err := ctx.Err(); err != nil {
				return err // a transaction that has begun does not end with ctx by itself
			}
			if err := one(); err != nil {
				return err
			}
		}
		n = len(all)
		progress(n, n)
		return tx.Audit(ctx, store.AuditEntry{
			Action: "master_key.rotate", Object: "master_key:" + to.ID(), After: map[string]any{"rewrapped": n},
		})
	})
	return n, err
}

// masterKey returns the key to seal under: the key that the keys of the service are
// sealed under, or the key in use when the database is empty.
func masterKey(ctx context.Context, s *store.Store, keys *seal.Keys) (*seal.MasterKey, error) {
	id, err := masterID(ctx, s)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return keys.InUse()
	}
	m, err := keys.ByID(id)
	return m, explainWrongKey(err)
}

// MasterKeyID returns the id of the master key that the database needs. It is empty when
// the database has no keys.
func MasterKeyID(ctx context.Context, s *store.Store) (string, error) { return masterID(ctx, s) }

// masterID returns the id of the master key that the keys of the service are sealed
// under. It is empty when there are no keys.
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

// explainWrongKey adds to seal.ErrWrongKey what the operator must do.
func explainWrongKey(err error) error {
	if !errors.Is(err, seal.ErrWrongKey) {
		return err
	}
	return lang.Errorf("access: the database needs another master key: use the key file that it was created with or last rotated to (--master-key or --data): %s",
		"la base de datos necesita otra clave maestra: use el archivo de la clave con la que se creó o a la que se rotó por última vez (--master-key o --data): %s", err)
}
