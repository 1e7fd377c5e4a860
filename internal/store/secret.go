package store

import (
	"context"
)

// Secret is a key of the service itself, sealed under the master key. Versions
// only ever grow, so that what an older one made stays checkable.
type Secret struct {
	Kind    string
	Version int64
	Sealed  []byte
}

// Secrets reads all versions of a kind, the oldest first.
func (r reader) Secrets(ctx context.Context, kind string) ([]Secret, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT version, sealed FROM secrets WHERE kind = $1 ORDER BY version`, kind)
	if err != nil {
		return nil, r.d.wrap("read secrets", err)
	}
	return collect(r.d, "read secrets", rows, func(row row) (Secret, error) {
		s := Secret{Kind: kind}
		err := row.Scan(&s.Version, &s.Sealed)
		return s, err
	})
}

// AddSecret stores a version of a secret unless it exists: of two nodes that
// start together on an empty database, one wins and both use its secret.
func (s *Store) AddSecret(ctx context.Context, secret Secret) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO secrets (kind, version, sealed, created_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`,
			secret.Kind, secret.Version, secret.Sealed, micros(s.now()))
		return s.d.wrap("add secret", err)
	})
}
