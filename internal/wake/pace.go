package wake

import "time"

// A Pace divides the waits of background work, so that development and tests wait
// less than production does. A pace below 1 counts as 1.
type Pace float64

// Of returns d divided by the pace, but at least floor, or d itself when d is shorter
// than floor.
func (p Pace) Of(d, floor time.Duration) time.Duration {
	return max(p.Scale(d), min(floor, d))
}

// Scale returns d divided by the pace.
func (p Pace) Scale(d time.Duration) time.Duration {
	return time.Duration(float64(d) / max(float64(p), 1))
}

// The longest and the shortest lease.
const (
	MaxLease = 30 * time.Second
	minLease = 2 * time.Second
)

// Lease returns how long a worker holds a claimed row without a heartbeat.
func (p Pace) Lease() time.Duration { return p.Of(MaxLease, minLease) }
