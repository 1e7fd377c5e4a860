package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// How long an entry of the authority's directory is believed, and that there is
// none.
const (
	knownReceiver   = 24 * time.Hour
	knownNoReceiver = time.Hour
	maxReceivers    = 10_000
)

// A directory remembers where buyers take documents.
type directory struct {
	mu      sync.Mutex
	entries map[string]entryOf
}

type entryOf struct {
	receiver fiscal.Receiver
	found    bool
	until    time.Time
}

// receiver finds where a buyer takes documents, if anywhere.
func (l *Live) receiver(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.Receiver, bool, error) {
	d := &l.directory
	d.mu.Lock()
	entry, ok := d.entries[rnc]
	d.mu.Unlock()
	if ok && l.Now().Before(entry.until) {
		return entry.receiver, entry.found, nil
	}
	receiver, found, err := l.Authority.Receiver(ctx, id, rnc)
	if errors.Is(err, fiscal.ErrAbsent) {
		found, err = false, nil // nobody has a receiver where there is no directory
	}
	if err != nil {
		return fiscal.Receiver{}, false, err
	}
	life := knownNoReceiver
	if found {
		life = knownReceiver
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.entries == nil || len(d.entries) >= maxReceivers {
		d.entries = make(map[string]entryOf)
	}
	d.entries[rnc] = entryOf{receiver, found, l.Now().Add(l.paced(life, time.Second))}
	return receiver, found, nil
}

// mayReceive tells whether a buyer may take documents: not when it was just seen
// that it does not.
func (l *Live) mayReceive(rnc string) bool {
	l.directory.mu.Lock()
	defer l.directory.mu.Unlock()
	entry, ok := l.directory.entries[rnc]
	return !ok || entry.found || !l.Now().Before(entry.until)
}

// forget looks a buyer up again next time: it was not where it was said to be.
func (l *Live) forget(rnc string) {
	l.directory.mu.Lock()
	defer l.directory.mu.Unlock()
	delete(l.directory.entries, rnc)
}
