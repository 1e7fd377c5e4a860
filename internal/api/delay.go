package api

import (
	"net/http"
	"time"
)

// How many refusals per second the service sends at most, when it has no capacity and
// to clients whose address has used up its window. The latter must wait longer anyway.
const (
	refusalsPerSecond         = 1000
	exceededRefusalsPerSecond = 250
)

// delayNextRead waits before the next request of a connection is read, after a
// refusal. A refusal costs nearly as much as a request: clients that ignore
// Retry-After would take the time of the requests that are served. The delay grows
// with the number of such connections. A client that waits for Retry-After does not
// notice it. A connection of a proxy is not delayed, because it carries requests of
// other clients, too.
func (a *API) delayNextRead(x *exchange) {
	delayed := a.delayed.Add(1)
	defer a.delayed.Add(-1)
	if shared(x.r) || http.NewResponseController(x.w).Flush() != nil || a.draining.Load() {
		return
	}
	rate := int64(refusalsPerSecond)
	if x.exceeded {
		rate = exceededRefusalsPerSecond
	}
	timer := time.NewTimer(readDelay(delayed, rate))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

// readDelay spreads the refusals of delayed connections over time: at most
// perSecond, and no connection waits longer than a second.
func readDelay(delayed, perSecond int64) time.Duration {
	return min(time.Duration(delayed)*time.Second/time.Duration(perSecond), time.Second)
}
