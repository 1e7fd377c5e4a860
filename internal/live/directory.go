package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// How long an answer of the authority's directory is cached: that a buyer has a
// receiver, and that it has none.
const (
	endpointTime   = 24 * time.Hour
	noEndpointTime = time.Hour
	maxEndpoints   = 10_000
)

// The environment has no directory when so many questions in a row, over so long, found
// that it lacks the service. One page of a gateway must not end a delivery for good.
const (
	noDirectoryTimes = 3
	noDirectorySpan  = time.Minute
)

// A directory caches where buyers receive documents.
type directory struct {
	mu      sync.Mutex
	entries map[string]directoryEntry

	absences    int       // questions in a row that found no directory
	absentSince time.Time // when the first of them was asked
}

type directoryEntry struct {
	endpoint fiscal.BuyerEndpoint
	found    bool
	until    time.Time
}

func newDirectory() *directory { return &directory{entries: make(map[string]directoryEntry)} }

// endpoint returns where a buyer receives documents, if it has a receiver.
func (p *Plan) endpoint(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.BuyerEndpoint, bool, error) {
	if entry, ok := p.directory.get(rnc, p.now()); ok {
		return entry.endpoint, entry.found, nil
	}
	endpoint, found, err := p.authority.BuyerEndpoint(ctx, id, rnc)
	if p.directory.isAbsent(err, p.now(), p.pace.Scale(noDirectorySpan)) {
		found, err = false, nil // without a directory no buyer has a receiver
	}
	if err != nil {
		return fiscal.BuyerEndpoint{}, false, err
	}
	life := noEndpointTime
	if found {
		life = endpointTime
	}
	p.directory.put(rnc, directoryEntry{endpoint, found, p.now().Add(p.pace.Of(life, time.Second))})
	return endpoint, found, nil
}

// isAbsent counts the result of a question and reports whether the environment has no
// directory.
func (d *directory) isAbsent(err error, now time.Time, span time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !errors.Is(err, fiscal.ErrAbsent) {
		d.absences = 0
		return false
	}
	if d.absences == 0 || now.Before(d.absentSince) {
		d.absences, d.absentSince = 0, now
	}
	d.absences++
	return d.absences >= noDirectoryTimes && now.Sub(d.absentSince) >= span
}

func (d *directory) get(rnc string, now time.Time) (directoryEntry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entry, ok := d.entries[rnc]
	return entry, ok && now.Before(entry.until)
}

func (d *directory) put(rnc string, entry directoryEntry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.entries) >= maxEndpoints {
		clear(d.entries)
	}
	d.entries[rnc] = entry
}

// mayReceive reports whether a buyer may have a receiver: false only when the
// directory has just said that it has none.
func (d *directory) mayReceive(rnc string, now time.Time) bool {
	entry, ok := d.get(rnc, now)
	return !ok || entry.found
}

// forget drops the cached answer about a buyer, because its receiver was not where
// the directory said.
func (d *directory) forget(rnc string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.entries, rnc)
}
