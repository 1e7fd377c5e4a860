package api

import "time"

// Retire gives every operation of a path a retirement.
func (a *API) Retire(pattern string, deprecated, sunset time.Time, page, successor string) {
	for i := range a.routes {
		if a.routes[i].name == pattern {
			a.routes[i].retirement = &retirement{deprecated, sunset, page, successor}
		}
	}
}

// Waiting returns how many requests wait for an event, a verdict or a test.
func (a *API) Waiting() int {
	a.waits.mu.Lock()
	defer a.waits.mu.Unlock()
	return len(a.waits.cancels)
}
