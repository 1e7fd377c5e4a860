package api

import (
	"net/http"
	"time"
)

// refusalsPerSecond is how many refusals per second the service sends when it
// has no free slots.
const refusalsPerSecond = 1000

// delayNextRead waits before the next request of a connection is read, after a
// refusal for lack of a slot. A refusal costs nearly as much as a request:
// clients that ignore Retry-After would take the time of the requests that are
// served. The delay grows with the number of such connections. A client that
// waits for Retry-After does not notice it. A connection of a proxy is not delayed,
// because it carries requests of other clients, too.
func (a *API) delayNextRead(x *exchange) {
	delayed := a.delayed.Add(1)
	defer a.delayed.Add(-1)
	if shared(x.r) || http.NewResponseController(x.w).Flush() != nil || a.draining.Load() {
		return
	}
	timer := time.NewTimer(readDelay(delayed))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

// readDelay spreads the refusals of delayed connections over time: at most
// refusalsPerSecond, and no connection waits longer than a second.
func readDelay(delayed int64) time.Duration {
	return min(time.Duration(delayed)*time.Second/refusalsPerSecond, time.Second)
}
