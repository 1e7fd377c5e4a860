package live

import (
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// The store takes an instant that lies further ahead than any pause for that of a wrong
// clock. The bounds are the longest pauses of the tables, with their jitter.
func TestTheStoreKnowsTheLongestPauses(t *testing.T) {
	t.Parallel()
	p := &Plan{random: func(n int64) int64 { return n - 1 }}
	longest := func(pauses []time.Duration) time.Duration {
		return p.pause([]time.Duration{0, slices.Max(pauses)}, 1)
	}
	const asked = time.Hour // the longest wait that the authority may ask for
	main := slices.Max([]time.Duration{longest(pollPauses), longest(reconcilePauses), sendMax, readinessPause, failedPause, clockPause, asked})
	if got := store.LongestPause(store.QueueMain); got != main {
		t.Errorf("the store expects jobs to wait for %s, they wait for %s", got, main)
	}
	if got, want := store.LongestPause(store.QueueDeliver), longest(deliverPauses); got != want {
		t.Errorf("the store expects deliveries to wait for %s, they wait for %s", got, want)
	}
}
