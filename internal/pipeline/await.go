package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Await waits until the status of an invoice is final or ctx ends, and returns
// the invoice as it is then. It sees a change that another node made within a
// second.
func (p *Pipeline) Await(ctx context.Context, scope store.Scope, invoiceID string) (store.Invoice, error) {
	poll := time.NewTicker(wake.PollEvery)
	defer poll.Stop()
	for {
		changed, unsubscribe := p.subscriptions.subscribe(invoiceID)
		inv, err := p.o.Store.Invoice(context.WithoutCancel(ctx), scope, invoiceID)
		if err != nil || inv.Status.Final() || ctx.Err() != nil {
			unsubscribe()
			return inv, err
		}
		select {
		case <-changed:
		case <-poll.C:
		case <-ctx.Done():
		}
		unsubscribe()
	}
}

// subscriptions are the requests that wait for a change, by invoice id.
type subscriptions struct {
	mu   sync.Mutex
	byID map[string]*subscription
}

type subscription struct {
	changed chan struct{}
	count   int
}

// subscribe returns a channel that the next notify for id closes. The caller must
// call unsubscribe.
func (s *subscriptions) subscribe(id string) (changed <-chan struct{}, unsubscribe func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]*subscription)
	}
	one := s.byID[id]
	if one == nil {
		one = &subscription{changed: make(chan struct{})}
		s.byID[id] = one
	}
	one.count++
	return one.changed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.count--; one.count == 0 && s.byID[id] == one {
			delete(s.byID, id)
		}
	}
}

func (s *subscriptions) notify(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.byID[id]; one != nil {
		close(one.changed)
		delete(s.byID, id)
	}
}
