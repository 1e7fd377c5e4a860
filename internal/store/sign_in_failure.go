package store

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// LockSignInFailures returns the instants of the failed sign-ins in a bucket and locks the
// bucket until the transaction ends, so that concurrent sign-ins are counted one after the
// other.
func (tx *Tx) LockSignInFailures(ctx context.Context, bucket string) ([]time.Time, error) {
	text, err := one(tx.rows(ctx, "lock sign-in failures", `
		INSERT INTO sign_in_failures (bucket, failed_at, expires_at) VALUES ($1, '', 0)
		ON CONFLICT (bucket) DO UPDATE SET bucket = excluded.bucket
		RETURNING failed_at`, bucket), only[string])
	if err != nil {
		return nil, err
	}
	var all []time.Time
	for word := range strings.FieldsSeq(text) {
		at, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, tx.d.wrap("read sign-in failures", err)
		}
		all = append(all, fromMicros(at))
	}
	return all, nil
}

// SetSignInFailures stores the instants of the failed sign-ins in a bucket, and until when
// they matter.
func (tx *Tx) SetSignInFailures(ctx context.Context, bucket string, all []time.Time, expires time.Time) error {
	words := make([]string, len(all))
	for i, at := range all {
		words[i] = strconv.FormatInt(micros(at), 10)
	}
	return tx.exec(ctx, "set sign-in failures", `
		UPDATE sign_in_failures SET failed_at = $2, expires_at = $3 WHERE bucket = $1`, bucket, strings.Join(words, " "), micros(expires))
}
