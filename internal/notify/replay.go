package notify

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

const (
	replayPause = 20 * time.Millisecond  // between two batches, for other transactions
	replayCheck = 100 * time.Millisecond // the shortest time between two searches for replays
)

// Replay selects the events that an endpoint receives again. Set one of its members.
type Replay struct {
	EventID string     // this event
	Since   *time.Time // all events since this instant
	Failed  bool       // all events that the endpoint has not received
}

// Replay sends events to an endpoint again, with their original ids. It returns at once
// and says how many events will be sent; the sender then prepares the deliveries in
// small batches. Any instant is valid: before the first event it selects all events, in
// the future it selects none. Replay fails with store.ErrNotFound when the endpoint or
// the event does not exist.
func (s *Endpoints) Replay(ctx context.Context, scope store.Scope, id string, what Replay) (plan store.ReplayPlan, err error) {
	switch now := s.o.Now(); {
	case what.EventID != "":
		plan, err = s.o.Store.ReplayEvent(ctx, scope, id, what.EventID, now)
	case what.Since != nil:
		plan, err = s.o.Store.StartReplaySince(ctx, scope, id, *what.Since, now)
	case what.Failed:
		plan, err = s.o.Store.StartReplayFailed(ctx, scope, id, now)
	default:
		err = errors.New("notify: a replay needs an event, an instant or Failed")
	}
	s.o.WakeSender()
	return plan, err
}

// RunReplay prepares the deliveries of the replays of an endpoint until none is left, as
// the sender of a running server does too: both may work on a replay at the same time. It
// ends early when the endpoint is disabled: the replays then wait until it is enabled.
// RunReplay calls progress with the number of deliveries that are due. When ctx ends, the
// sender continues.
func (s *Endpoints) RunReplay(ctx context.Context, scope store.Scope, id string, progress func(due int64)) error {
	due := make(map[string]int64)
	for {
		all, err := s.o.Store.Replays(ctx, scope.Environment)
		if err != nil {
			return err
		}
		left := false
		for _, r := range all {
			if r.EndpointID != id {
				continue
			}
			left = true
			done, err := s.o.Store.RunReplayBatch(ctx, r, s.o.Now())
			if err != nil {
				return err
			}
			due[r.What] = max(due[r.What], done.Total)
		}
		total := int64(0)
		for _, n := range due {
			total += n
		}
		progress(total)
		s.o.WakeSender()
		if !left {
			return nil
		}
		if wake.Sleep(ctx, replayPause); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// runReplays works off the replays until ctx ends. Each batch is a transaction of its
// own. So other transactions run between the batches, and after a crash the replay goes
// on where it was.
func (s *Sender) runReplays(ctx context.Context) {
	for ctx.Err() == nil {
		if s.replayRound(ctx) {
			continue
		}
		wake.Sleep(ctx, replayCheck)
		s.replaySignal.Wait(ctx, wake.PollEvery)
	}
}

// replayRound runs one batch of each replay, so that no endpoint waits for the long
// replay of another. It reports whether there was work to do.
func (s *Sender) replayRound(ctx context.Context) (worked bool) {
	replays, err := s.o.Store.Replays(ctx, s.o.Env)
	s.warn(ctx, err, "Cannot read the replays of webhook events. The sender retries.")
	for _, r := range replays {
		if ctx.Err() != nil {
			return worked
		}
		done, err := s.o.Store.RunReplayBatch(ctx, r, s.o.Now())
		switch {
		case err != nil:
			s.warn(ctx, err, "Cannot prepare the next events of a replay. The sender retries.", "endpoint_id", r.EndpointID, "replay", r.What)
		case done.Ended:
			worked = true
			s.o.Log.Info("A replay of webhook events is complete: all its deliveries are due, or the endpoint was deleted.", "endpoint_id", r.EndpointID, "taxpayer_id", r.TaxpayerID, "replay", r.What, "deliveries", done.Total)
		case done.Events > 0:
			worked = true
			s.signal.Notify()
		}
		wake.Sleep(ctx, replayPause)
	}
	return worked
}
