package store

import (
	"context"
	"time"
)

// UseSeed records the use of a seed until the seed expires, and reports whether this is
// its first use. digest identifies the seed. UseSeed also deletes a few expired seeds,
// so that the table does not grow between two purges.
func (s *Store) UseSeed(ctx context.Context, digest []byte, expires, now time.Time) (fresh bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		if err := tx.exec(ctx, "delete expired seeds", `
			DELETE FROM used_seeds WHERE expires_at <= $1 AND digest IN (
				SELECT digest FROM used_seeds WHERE expires_at <= $1 ORDER BY expires_at LIMIT 10)`, micros(now)); err != nil {
			return err
		}
		fresh, err = tx.write(ctx, "use seed", do(`
			INSERT INTO used_seeds (digest, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			digest, micros(expires)))
		return err
	})
	return fresh && err == nil, err
}
