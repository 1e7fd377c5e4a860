package store

import (
	"context"
	"time"
)

// Secret is a key of the service itself, encrypted with the master key. A new version
// does not replace the older ones, so that the service can still check what they signed.
type Secret struct {
	Kind      string
	Version   int64
	Sealed    []byte
	CreatedAt time.Time
}

const secretColumns = `kind, version, sealed, created_at`

// Secrets reads all versions of a kind, the oldest first.
func (r reader) Secrets(ctx context.Context, kind string) ([]Secret, error) {
	return collect(r.rows(ctx, "read secrets", `
		SELECT `+secretColumns+` FROM secrets WHERE kind = $1 ORDER BY version`, kind), (*Secret).columns)
}

// AllSecrets reads the secrets of all kinds, the oldest of each kind first.
func (r reader) AllSecrets(ctx context.Context) ([]Secret, error) {
	return collect(r.rows(ctx, "read secrets", `SELECT `+secretColumns+` FROM secrets ORDER BY kind, version`), (*Secret).columns)
}

func (s *Secret) columns() []any {
	return []any{&s.Kind, &s.Version, &s.Sealed, instant(&s.CreatedAt)}
}

// AddSecret stores a version of a secret, unless it exists. When two nodes start on an
// empty database at the same time, both use the secret that was stored first.
func (tx *Tx) AddSecret(ctx context.Context, secret Secret) error {
	return tx.exec(ctx, "add secret", `
		INSERT INTO secrets (`+secretColumns+`) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`,
		secret.Kind, secret.Version, secret.Sealed, micros(tx.now()))
}

// DropSecret deletes a version of a secret. It does nothing when there is none.
func (tx *Tx) DropSecret(ctx context.Context, kind string, version int64) error {
	return tx.exec(ctx, "drop secret", `DELETE FROM secrets WHERE kind = $1 AND version = $2`, kind, version)
}

// AddSecret is Tx.AddSecret in a transaction of its own.
func (s *Store) AddSecret(ctx context.Context, secret Secret) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.AddSecret(ctx, secret) })
}

// LockSecrets reads all secrets and locks them until the transaction ends. A transaction
// that encrypts a value locks them too, so that it cannot use a master key that is being
// replaced.
func (tx *Tx) LockSecrets(ctx context.Context) ([]Secret, error) {
	return collect(tx.rows(ctx, "lock secrets", `UPDATE secrets SET version = version RETURNING `+secretColumns), (*Secret).columns)
}

// RewrapSecret replaces an encrypted secret. It is the same secret, encrypted with
// another master key.
func (tx *Tx) RewrapSecret(ctx context.Context, s Secret) error {
	return tx.exec(ctx, "rewrap secret", `UPDATE secrets SET sealed = $3 WHERE kind = $1 AND version = $2`, s.Kind, s.Version, s.Sealed)
}

// SealedSecret is an encrypted secret of a taxpayer. Its version is part of the
// authenticated data, which binds the secret to its row.
type SealedSecret struct {
	Sealed  []byte
	Version int64
}
