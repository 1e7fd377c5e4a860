package store

import (
	"context"
	"time"
)

// maxSkew is how much the clocks of nodes may differ.
const maxSkew = time.Minute

// TakeBlock reserves n requests in the current time window of a bucket, and returns how
// many requests of the window are reserved, including these. It does not know the limit:
// the caller compares the result with it.
//
// A later windowEnd starts a new window. A node whose clock is up to maxSkew behind
// counts in the stored window. A stored window further ahead than that came from a wrong
// clock, and the new one replaces it.
func (tx *Tx) TakeBlock(ctx context.Context, bucket string, windowEnd time.Time, n int64) (int64, error) {
	return one(tx.rows(ctx, "reserve requests", `
		INSERT INTO rate_windows (bucket, window_end, granted) VALUES ($1, $2, $3)
		ON CONFLICT (bucket) DO UPDATE SET
			granted = CASE WHEN excluded.window_end > rate_windows.window_end
				OR excluded.window_end < rate_windows.window_end - $4
				THEN excluded.granted ELSE rate_windows.granted + excluded.granted END,
			window_end = CASE WHEN excluded.window_end > rate_windows.window_end
				OR excluded.window_end < rate_windows.window_end - $4
				THEN excluded.window_end ELSE rate_windows.window_end END
		RETURNING granted`, bucket, micros(windowEnd), n, maxSkew.Microseconds()), only[int64])
}
