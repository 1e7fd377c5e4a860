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
// In production every service exists, and a service that has answered once exists
// everywhere: there such a page is an outage. Otherwise the page confirms an absence
// that the documentation states, or several pages in a row show one.
type absence struct {
	production bool
	documented bool // the documentation says that the environment lacks the service
	now        func() time.Time
	span       time.Duration

	mu       sync.Mutex
	answered bool      // the service itself has answered
	pages    int       // in a row
	first    time.Time // when the first of them arrived
}

// exists reports whether the service is known to exist.
func (a *absence) exists() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.production || a.answered
}

// addPage counts a page and reports whether the environment lacks the service.
func (a *absence) addPage() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.documented {
		return true
	}
	now := a.now()
	if a.pages == 0 || now.Before(a.first) {
		a.pages, a.first = 0, now
	}
	a.pages++
	return a.pages >= absenceTimes && now.Sub(a.first) >= a.span
}

// addAnswer records that the service itself has answered.
func (a *absence) addAnswer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = true
}

// clear forgets the pages: something else than a page has arrived.
func (a *absence) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages = 0
}
