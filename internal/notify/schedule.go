package notify

import (
	"math/rand/v2"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// steps are how long after each failure the next attempt is made: ten attempts
// over 75 hours and 35 minutes, the schedule of Standard Webhooks. It outlasts a
// week-end.
var steps = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	punctual     = 2 // so many attempts after the first are never early
	restTime     = 5 * time.Second
	disableAfter = 5 * 24 * time.Hour
	minWait      = 100 * time.Millisecond
)

// backOff is how long to wait after the nth attempt has failed, and false when
// that was the last.
func backOff(n int64, pace wake.Pace, asked time.Duration) (time.Duration, bool) {
	if n > int64(len(steps)) {
		return 0, false
	}
	step := float64(steps[n-1])
	jitter := rand.Float64() / 10          //nolint:gosec // jitter is no secret
	if n > punctual && rand.IntN(2) == 0 { //nolint:gosec // jitter is no secret
		jitter = -jitter
	}
	return pace.Of(max(time.Duration(step*(1+jitter)), asked), minWait), true
}

// outcome is what follows from how the nth attempt of a delivery ended.
func outcome(d store.Delivery, r webhook.Result, at time.Time, pace wake.Pace) store.DeliveryOutcome {
	o := store.DeliveryOutcome{State: store.DeliveryDelivered, RunAt: d.RunAt}
	if r.OK() {
		return o
	}
	o.State, o.Busy, o.Gone = store.DeliveryFailed, r.Slow, r.Gone
	o.RestUntil, o.DisableAfter = at.Add(pace.Of(restTime, minWait)), pace.Of(disableAfter, minWait)
	if wait, more := backOff(d.Attempt+1, pace, r.RetryAfter); more {
		o.State, o.RunAt = store.DeliveryPending, at.Add(wait)
	}
	return o
}
