package notify

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// steps are the waits between the ten attempts of a delivery. They are the schedule of
// Standard Webhooks, 75 hours and 35 minutes in all, which is longer than a week-end.
var steps = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	neverEarly   = 2                  // the jitter of the first two waits only adds time
	restTime     = 5 * time.Second    // after a failure the endpoint gets nothing for so long
	disableAfter = 5 * 24 * time.Hour // of failures without a success
	minWait      = 100 * time.Millisecond
	jitterParts  = 1 << 20 // the steps of the jitter
)

// backOff returns the wait after the nth attempt has failed, and false when that was the
// last attempt. The wait is at least as long as the receiver has asked for.
func backOff(n int64, pace wake.Pace, asked time.Duration, random func(int64) int64) (time.Duration, bool) {
	if n > int64(len(steps)) {
		return 0, false
	}
	step := float64(steps[n-1])
	jitter := float64(random(jitterParts)) / jitterParts / 10
	if n > neverEarly && random(2) == 0 {
		jitter = -jitter
	}
	return pace.Of(max(time.Duration(step*(1+jitter)), asked), minWait), true
}

// outcome returns the effect of an attempt on its delivery and its endpoint.
func outcome(d store.Delivery, r webhook.Result, at time.Time, pace wake.Pace, random func(int64) int64) store.DeliveryOutcome {
	o := store.DeliveryOutcome{State: store.DeliveryDelivered, RunAt: d.RunAt}
	if r.OK() {
		return o
	}
	o.State, o.Busy, o.Gone = store.DeliveryFailed, r.Slow, r.Gone
	o.RestUntil, o.DisableAfter = at.Add(pace.Of(restTime, minWait)), pace.Of(disableAfter, minWait)
	if wait, more := backOff(d.Attempt+1, pace, r.RetryAfter, random); more {
		o.State, o.RunAt = store.DeliveryPending, at.Add(wait)
	}
	return o
}
