package store

import "time"

// The longest pauses of the service, with their jitter. An instant that lies further ahead
// was stored while the clock was wrong, and counts as passed. A bound that is too short
// would make work start too early, so whoever adds a longer pause must change these.
const (
	longestMainPause    = 72 * time.Minute              // hourly questions to the authority, and up to a fifth more
	longestDeliverPause = 28*time.Hour + 48*time.Minute // daily deliveries to a buyer, and up to a fifth more
	// LongestDeliveryPause is between two attempts of a webhook delivery.
	LongestDeliveryPause = 26*time.Hour + 24*time.Minute // daily webhook deliveries, and up to a tenth more
	longestCheckPause    = 24 * time.Hour                // daily comparisons of a document that differs
)

// LongestPause returns the longest time for which a job of a queue may wait.
func LongestPause(q Queue) time.Duration {
	if q == QueueDeliver {
		return longestDeliverPause
	}
	return longestMainPause
}

// farAhead returns the stored form of the last instant that a right clock can have stored
// at now for something that waits for pause. Clocks differ, and are set back a little.
func farAhead(now time.Time, pause time.Duration) int64 {
	return micros(now.Add(pause + longestLease))
}

// WrongClock reports whether an instant that should have passed lies so far ahead that only
// a wrong clock can have stored it.
func WrongClock(at, now time.Time) bool { return at.After(now.Add(longestLease)) }
