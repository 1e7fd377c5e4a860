package notify

import (
	"context"
	"errors"

	"github.com/fiscalhub/fiscalhub/internal/combine"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// maxOutcomes is how many outcomes share a commit at most.
const maxOutcomes = 64

// An outcomeGroup records the outcomes of attempts. Outcomes of accepted events wait for
// gatherTime, and while another commit waits for the disk, and then share a commit. An
// outcome is recorded when record has returned, as without a group.
type outcomeGroup struct {
	store *store.Store
	group combine.Group[store.DeliveryResult]
}

func newOutcomeGroup(s *store.Store) *outcomeGroup {
	g := &outcomeGroup{store: s}
	g.group = combine.Group[store.DeliveryResult]{Run: g.commit, Max: maxOutcomes, Gather: gatherTime}
	return g
}

// record stores the outcome of an attempt, as store.RecordDelivery does.
func (g *outcomeGroup) record(ctx context.Context, d store.Delivery, o store.DeliveryOutcome) (disabled bool, err error) {
	if o.State != store.DeliveryDelivered {
		return g.store.RecordDelivery(ctx, d, o)
	}
	return false, g.group.Do(ctx, store.DeliveryResult{Delivery: d, Outcome: o})
}

// commit records outcomes in one transaction, or each in its own when another sender has
// taken one of the deliveries.
func (g *outcomeGroup) commit(ctx context.Context, calls []*combine.Call[store.DeliveryResult]) {
	results := make([]store.DeliveryResult, len(calls))
	for i, c := range calls {
		results[i] = c.Value
	}
	err := g.store.RecordDelivered(ctx, results)
	combine.SetAll(calls, err)
	if len(calls) == 1 || !errors.Is(err, store.ErrLeaseLost) {
		return
	}
	for _, c := range calls {
		_, c.Err = g.store.RecordDelivery(ctx, c.Value.Delivery, c.Value.Outcome)
	}
}
