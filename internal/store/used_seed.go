package store

import (
	"context"
	"time"
)

// UseSeed records that a seed was used, by its digest, until it would expire, and
// tells whether that is the first time. Those that have expired are forgotten.
func (s *Store) UseSeed(ctx context.Context, digest []byte, expires, now time.Time) (fresh bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.q.ExecContext(ctx, `DELETE FROM used_seeds WHERE expires_at <= $1`, micros(now)); err != nil {
			return tx.d.wrap("forget seeds", err)
		}
		n, err := statement{`
			INSERT INTO used_seeds (digest, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			[]any{digest, micros(expires)}}.run(ctx, tx.q)
		fresh = n > 0
		return tx.d.wrap("use seed", err)
	})
	return fresh && err == nil, err
}
