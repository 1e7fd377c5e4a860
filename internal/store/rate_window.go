package store

import (
	"context"
	"time"
)

// maxSkew is how far the clocks of nodes may be apart.
const maxSkew = time.Minute

// TakeBlock claims n places of a bucket's current window for this node and
// returns how many places of the window are claimed by now, these included.
// Beyond the limit a claim is void, which is for the caller to see: the row
// only counts. The window moves forward, so that a node whose clock is a little
// behind cannot open a fresh one; one far ahead was opened by a clock that has
// been put right since, and gives way.
func (tx *Tx) TakeBlock(ctx context.Context, bucket string, windowEnd time.Time, n int64) (claimed int64, err error) {
	err = tx.q.QueryRowContext(ctx, `
		INSERT INTO rate_windows (bucket, window_end, granted) VALUES ($1, $2, $3)
		ON CONFLICT (bucket) DO UPDATE SET
			granted = CASE WHEN excluded.window_end > rate_windows.window_end
				OR excluded.window_end < rate_windows.window_end - $4
				THEN excluded.granted ELSE rate_windows.granted + excluded.granted END,
			window_end = CASE WHEN excluded.window_end > rate_windows.window_end
				OR excluded.window_end < rate_windows.window_end - $4
				THEN excluded.window_end ELSE rate_windows.window_end END
		RETURNING granted`, bucket, micros(windowEnd), n, maxSkew.Microseconds()).Scan(&claimed)
	return claimed, tx.d.wrap("take block", err)
}
