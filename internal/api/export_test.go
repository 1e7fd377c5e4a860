package api

import "time"

// Retire marks every operation of a path as one that ends.
func (a *API) Retire(pattern string, deprecated, sunset time.Time, page, successor string) {
	for i := range a.routes {
		if a.routes[i].name == pattern {
			a.routes[i].ends = &retirement{deprecated, sunset, page, successor}
		}
	}
}

// Waiting is how many requests wait for news.
func (a *API) Waiting() int {
	a.waits.mu.Lock()
	defer a.waits.mu.Unlock()
	return len(a.waits.underWay)
}
