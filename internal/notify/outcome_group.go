package notify

import (
	"context"
	"errors"
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// maxOutcomes is how many outcomes share a commit at most.
const maxOutcomes = 64

// An outcomeGroup records the outcomes of attempts. Outcomes of accepted events wait for
// gatherTime, and while another commit waits for the disk, and then share a commit. An
// outcome is recorded when record has returned, as without a group.
type outcomeGroup struct {
	mu      sync.Mutex
	busy    bool // an attempt's goroutine commits
	waiting []*waitingOutcome
}

type waitingOutcome struct {
	store.DeliveryResult
	done chan error
}

// record stores the outcome of an attempt, as store.RecordDelivery does.
func (g *outcomeGroup) record(ctx context.Context, s *store.Store, d store.Delivery, o store.DeliveryOutcome) (disabled bool, err error) {
	if o.State != store.DeliveryDelivered {
		return s.RecordDelivery(ctx, d, o)
	}
	own := &waitingOutcome{store.DeliveryResult{Delivery: d, Outcome: o}, make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, own)
	leads := !g.busy
	g.busy = true
	g.mu.Unlock()
	if leads {
		g.commitAll(ctx, s)
	}
	return false, <-own.done
}

// commitAll commits the outcomes that wait until there is none left.
func (g *outcomeGroup) commitAll(ctx context.Context, s *store.Store) {
	for {
		wake.Sleep(ctx, gatherTime)
		g.mu.Lock()
		some := g.waiting[:min(len(g.waiting), maxOutcomes)]
		g.waiting = g.waiting[len(some):]
		g.busy = len(some) > 0
		g.mu.Unlock()
		if len(some) == 0 {
			return
		}
		commitTogether(ctx, s, some)
	}
}

// commitTogether records outcomes in one transaction, or each in its own when another
// sender has taken one of the deliveries.
func commitTogether(ctx context.Context, s *store.Store, some []*waitingOutcome) {
	results := make([]store.DeliveryResult, len(some))
	for i, one := range some {
		results[i] = one.DeliveryResult
	}
	err := s.RecordDelivered(ctx, results)
	alone := len(some) > 1 && errors.Is(err, store.ErrLeaseLost)
	for _, one := range some {
		if alone {
			_, err = s.RecordDelivery(ctx, one.Delivery, one.Outcome)
		}
		one.done <- err
	}
}
