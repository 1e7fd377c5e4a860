package dgii

import (
	"sync"
	"time"
)

const (
	// absenceTimes and absenceSpan say how many pages in a row, over how long, show
	// that an environment lacks a service of which the documentation says nothing.
	absenceTimes = 3
	absenceSpan  = time.Minute
)

// An absence decides what HTTP 404 with an unknown page means: that the environment
// lacks the service, or that something between the service and us is broken.
//
// In production every service exists, so such a page is an outage. In the other
// environments the page confirms an absence that the documentation states;
// otherwise several pages in a row are needed.
type absence struct {
	production bool
	documented bool // the documentation says that the environment lacks the service
	now        func() time.Time
	span       time.Duration

	mu    sync.Mutex
	pages int       // in a row
	first time.Time // when the first of them arrived
}

// addPage counts a page and reports whether the environment lacks the service.
func (a *absence) addPage() bool {
	if a.documented {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.pages == 0 || now.Before(a.first) {
		a.pages, a.first = 0, now
	}
	a.pages++
	return a.pages >= absenceTimes && now.Sub(a.first) >= a.span
}

// clear forgets the pages: the service has answered in another way.
func (a *absence) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages = 0
}
