package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// otherNodes is how soon a change that another node made is seen by who waits.
const otherNodes = time.Second

// Await waits until nothing more is awaited from the authority about an invoice,
// or ctx ends, and returns the invoice as it is then.
func (p *Pipeline) Await(ctx context.Context, scope store.Scope, invoiceID string) (store.Invoice, error) {
	again := time.NewTicker(otherNodes)
	defer again.Stop()
	for {
		rung, leave := p.bell.listen(invoiceID)
		inv, err := p.Store.Invoice(context.WithoutCancel(ctx), scope, invoiceID)
		if err != nil || inv.Status.Final() || ctx.Err() != nil {
			leave()
			return inv, err
		}
		select {
		case <-rung:
		case <-again.C:
		case <-ctx.Done():
		}
		leave()
	}
}

// changed tells those who wait here that an invoice has changed.
func (p *Pipeline) changed(inv store.Invoice, told bool) {
	p.bell.ring(inv.ID)
	if told {
		p.tell(inv.Scope)
	}
}

// tell lets whoever tells integrators know that there is something to tell.
func (p *Pipeline) tell(scope store.Scope) {
	if p.Told != nil {
		p.Told(scope)
	}
}

// A bell wakes those who wait for something of a name.
type bell struct {
	mu    sync.Mutex
	heard map[string]*listeners
}

type listeners struct {
	rung  chan struct{}
	count int
}

// listen returns a channel that is closed by the next ring. Whoever listens
// leaves.
func (b *bell) listen(name string) (rung <-chan struct{}, leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard == nil {
		b.heard = make(map[string]*listeners)
	}
	l := b.heard[name]
	if l == nil {
		l = &listeners{rung: make(chan struct{})}
		b.heard[name] = l
	}
	l.count++
	return l.rung, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if l.count--; l.count == 0 && b.heard[name] == l {
			delete(b.heard, name)
		}
	}
}

func (b *bell) ring(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.heard[name]; l != nil {
		close(l.rung)
		delete(b.heard, name)
	}
}
