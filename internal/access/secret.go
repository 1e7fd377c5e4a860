package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Secrets seals and opens the secrets of taxpayers and people other than the private keys of
// certificates: the signing secrets of webhook endpoints and event sources, stored answers
// that contain such a secret, and the second factors of people.
type Secrets struct {
	store *store.Store
	keys  *seal.Keys
}

// NewSecrets returns the secrets of a store. Call LoadKeyring first.
func NewSecrets(s *store.Store, keys *seal.Keys) *Secrets { return &Secrets{store: s, keys: keys} }

// Binding identifies the row that a sealed secret belongs to. A copy in another row
// does not open.
type Binding struct {
	scope   store.Scope
	kind    string
	id      string
	version int64
}

// EndpointBinding returns the binding of a version of a webhook endpoint's secret.
func EndpointBinding(scope store.Scope, id string, version int64) Binding {
	return Binding{scope, "webhook_endpoint", id, version}
}

// SourceBinding returns the binding of a version of an event source's secret.
func SourceBinding(scope store.Scope, id string, version int64) Binding {
	return Binding{scope, "event_source", id, version}
}

// AnswerBinding returns the binding of an answer that contains a secret. An answer
// never changes, so it has one version.
func AnswerBinding(scope store.Scope, operation, key string) Binding {
	return Binding{scope, "answer", operation + " " + key, 1}
}

// SecondFactorBinding returns the binding of the secret of a person's second factor. A new
// secret replaces the old one in the same row.
func SecondFactorBinding(userID string) Binding {
	return Binding{store.Scope{}, "second_factor", userID, 1}
}

func (b Binding) aad() []byte {
	return seal.AAD(b.scope.TaxpayerID, string(b.scope.Environment), b.kind, b.id, strconv.FormatInt(b.version, 10))
}

// Sealer seals a secret for a row. Store the result in the transaction that Update has
// passed along with the sealer.
type Sealer func(row Binding, plain []byte) (store.SealedSecret, error)

// Update runs fn in a transaction, with a sealer for the secrets that fn stores. No
// rotation of the master key can miss these secrets: Update runs fn again when the
// master key was rotated first. It fails with ErrNoKeyring when LoadKeyring was never
// called for the database.
func (s *Secrets) Update(ctx context.Context, fn func(*store.Tx, Sealer) error) error {
	for {
		master, err := masterKey(ctx, s.store, s.keys)
		if err != nil {
			return err
		}
		err = s.store.Update(ctx, func(tx *store.Tx) error {
			if err := lockMaster(ctx, tx, master); err != nil {
				return err
			}
			return fn(tx, func(row Binding, plain []byte) (store.SealedSecret, error) {
				sealed, err := master.Seal(plain, row.aad())
				if err != nil {
					return store.SealedSecret{}, fmt.Errorf("access: seal %s: %w", row.kind, err)
				}
				return store.SealedSecret{Sealed: sealed, Version: row.version}, nil
			})
		})
		if !errors.Is(err, errRotated) {
			return err
		}
	}
}

// Open decrypts the secret of a row. It fails with seal.ErrTampered when the secret
// belongs to another row, and with seal.ErrWrongKey when it needs another master key.
func (s *Secrets) Open(row Binding, sealed []byte) ([]byte, error) {
	plain, err := s.keys.Open(sealed, row.aad())
	if err != nil {
		return nil, explainWrongKey(fmt.Errorf("access: open %s %s: %w", row.kind, row.id, err))
	}
	return plain, nil
}

// lockMaster makes rotations of the master key wait until the transaction ends. It
// fails with errRotated when the master key was rotated first.
func lockMaster(ctx context.Context, tx *store.Tx, master *seal.MasterKey) error {
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
