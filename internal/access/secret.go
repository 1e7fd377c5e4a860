package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Secrets seals and opens what is kept secret for taxpayers besides the keys of
// their certificates: what endpoints and sources sign with, and answers that
// hold such a secret.
type Secrets struct {
	Store *store.Store
	Keys  *seal.Keys
}

// Place is where a secret belongs. Copied to another place it does not open.
type Place struct {
	store.Scope
	Kind    string
	ID      string
	Version int64
}

// EndpointSecret is the place of a version of an endpoint's secret.
func EndpointSecret(scope store.Scope, id string, version int64) Place {
	return Place{scope, "webhook_endpoint", id, version}
}

// SourceSecret is the place of a version of a source's secret.
func SourceSecret(scope store.Scope, id string, version int64) Place {
	return Place{scope, "event_source", id, version}
}

// AnswerSecret is the place of an answer that holds a secret. An answer never
// changes, so it has one version.
func AnswerSecret(scope store.Scope, operation, key string) Place {
	return Place{scope, "answer", operation + " " + key, 1}
}

func (p Place) aad() []byte {
	return seal.AAD(p.TaxpayerID, string(p.Environment), p.Kind, p.ID, strconv.FormatInt(p.Version, 10))
}

// Sealer seals what is stored in the transaction that it was given for.
type Sealer func(at Place, plain []byte) (store.SealedSecret, error)

// Update runs fn in a transaction, with what seals secrets to be stored in it. A
// rotation of the master key cannot miss them: one that came first has fn run
// again.
func (s Secrets) Update(ctx context.Context, fn func(*store.Tx, Sealer) error) error {
	for {
		master, err := masterKey(ctx, s.Store, s.Keys)
		if err != nil {
			return err
		}
		err = s.Store.Update(ctx, func(tx *store.Tx) error {
			if err := holdMaster(ctx, tx, master); err != nil {
				return err
			}
			return fn(tx, func(at Place, plain []byte) (store.SealedSecret, error) {
				sealed, err := master.Seal(plain, at.aad())
				if err != nil {
					return store.SealedSecret{}, fmt.Errorf("access: seal %s: %w", at.Kind, err)
				}
				return store.SealedSecret{Sealed: sealed, Version: at.Version}, nil
			})
		})
		if !errors.Is(err, errRotated) {
			return err
		}
	}
}

// Open returns a secret in the clear.
func (s Secrets) Open(at Place, sealed []byte) ([]byte, error) {
	plain, err := s.Keys.Open(sealed, at.aad())
	if err != nil {
		return nil, explain(fmt.Errorf("access: open %s %s: %w", at.Kind, at.ID, err))
	}
	return plain, nil
}

// holdMaster keeps rotations of the master key waiting until the transaction
// ends. The error is errRotated when one has come first.
func holdMaster(ctx context.Context, tx *store.Tx, master *seal.MasterKey) error {
	if _, err := tx.LockSecrets(ctx); err != nil {
		return err
	}
	switch now, err := masterID(ctx, tx); {
	case err != nil:
		return err
	case now == "":
		return ErrNoKeyring
	case now != master.ID():
		return errRotated
	}
	return nil
}
