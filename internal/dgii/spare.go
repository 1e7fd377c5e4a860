package dgii

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// spareWait is how soon a spare call that found no slot may try again.
const spareWait = time.Second

// Spare makes look-ups of the lowest priority: they never delay other calls. A
// look-up fails at once, with fiscal.ErrUnavailable and fiscal.ErrOutage, when
//
//   - fewer than half of the slots of the host are free, or
//   - a service, this one or another, must not be called now because its circuit is
//     open or it has asked to wait.
//
// Otherwise it is a call like any other, with the same token, circuit and slots.
type Spare struct {
	client            *Client
	state, rfceLookup *service
}

// Spare returns the look-ups of the lowest priority.
func (c *Client) Spare() Spare {
	state, rfceLookup := *c.state, *c.rfceLookup // they share circuit, slots and absence
	state.spare, rfceLookup.spare = true, true
	state.spareWait, rfceLookup.spareWait = c.pace.Of(spareWait, minWait), c.pace.Of(spareWait, minWait)
	return Spare{c, &state, &rfceLookup}
}

// State is Client.State with the lowest priority.
func (s Spare) State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	if err := s.check(s.state); err != nil {
		return fiscal.AuthorityAnswer{}, asUnavailable(err)
	}
	return s.client.lookUpState(ctx, id, s.state, q)
}

// SummaryState is Client.SummaryState with the lowest priority.
func (s Spare) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	if err := s.check(s.rfceLookup); err != nil {
		return fiscal.AuthorityAnswer{}, asUnavailable(err)
	}
	return s.client.lookUpSummary(ctx, id, s.rfceLookup, q)
}

// check returns an error while other calls need the slots of the host, or while
// another service must not be called. The permit of the call checks its own service,
// and the slots once more: fetching a token may take a while.
func (s Spare) check(own *service) error {
	if own.slots.busy() {
		return own.busyError()
	}
	for _, other := range s.client.services {
		if wait := other.breaker.check(); wait != nil && other.breaker != own.breaker {
			return own.openError(wait)
		}
	}
	return nil
}
