package live_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// patient is an authority that notes which calls have less time than an exchange needs.
type patient struct {
	live.Authority
	mu    sync.Mutex
	calls map[string]bool // whether one of them had a deadline
}

func (a *patient) note(ctx context.Context, call string) {
	_, limited := ctx.Deadline()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[call] = a.calls[call] || limited
}

func (a *patient) Reserve(ctx context.Context, id *xmlsig.Identity, rnc string, summary bool) (func(context.Context, fiscal.Shipment) (fiscal.AuthorityAnswer, error), func(), error) {
	a.note(ctx, "reserve")
	send, release, err := a.Authority.Reserve(ctx, id, rnc, summary)
	return func(ctx context.Context, s fiscal.Shipment) (fiscal.AuthorityAnswer, error) {
		a.note(ctx, "send")
		return send(ctx, s)
	}, release, err
}

func (a *patient) Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.AuthorityAnswer, error) {
	a.note(ctx, "result")
	return a.Authority.Result(ctx, id, trackID)
}

func (a *patient) TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error) {
	a.note(ctx, "track ids")
	return a.Authority.TrackIDs(ctx, id, q)
}

func (a *patient) State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	a.note(ctx, "state")
	return a.Authority.State(ctx, id, q)
}

func (a *patient) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	a.note(ctx, "summary state")
	return a.Authority.SummaryState(ctx, id, q)
}

func (a *patient) BuyerEndpoint(ctx context.Context, id *xmlsig.Identity, rnc string) (fiscal.BuyerEndpoint, bool, error) {
	a.note(ctx, "directory")
	return a.Authority.BuyerEndpoint(ctx, id, rnc)
}

func (a *patient) Deliver(ctx context.Context, id *xmlsig.Identity, to fiscal.BuyerEndpoint, s fiscal.Shipment) (fiscal.Acknowledgement, error) {
	a.note(ctx, "delivery")
	return a.Authority.Deliver(ctx, id, to, s)
}

// No stage takes the time of an exchange away with the exchanges and the waits for a slot
// that came before: the client bounds each exchange from its start on. A stage that looks
// a document up makes four exchanges, each of which may take half a minute.
func TestTheTimeOfAnExchangeStartsWithIt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		noted := &patient{Authority: w.Client, calls: map[string]bool{}}
		w.Options.Authority = noted
		w.Start()
		w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02"})
		w.Rule(1, simulator.RFCE, simulator.Action{Fault: "F02"})
		credit, small := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Hour)
		w.Want(credit, "queued outcome_unknown accepted delivered")
		w.Want(small, "queued outcome_unknown accepted")
		for _, call := range []string{"reserve", "send", "result", "track ids", "state", "summary state", "directory", "delivery"} {
			if limited, made := noted.calls[call]; !made || limited {
				t.Errorf("%s: made %v, with a deadline of the stage %v", call, made, limited)
			}
		}
	})
}
