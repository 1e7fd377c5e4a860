package store

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// ReplayBatch is how many events one transaction of a replay handles at most.
const ReplayBatch = 200

// Replay is a replay that is not done yet. The sender works it off with RunReplayBatch.
type Replay struct {
	Scope
	EndpointID string
	// What selects the events: since a moment, also those that the endpoint has
	// received; failed deliveries; or missed, which are the events without a delivery
	// of a time when the endpoint was disabled.
	What string
}

const (
	replayFailed = "failed"
	replayMissed = "missed"
)

const replayColumns = `endpoint_id, environment, taxpayer_id, what, position_at, position_id, until_at, done, created_at`

// extendReplay extends a replay that is not done: it goes back to the earlier of the two
// positions, and ends at the later of the two ends.
const extendReplay = `ON CONFLICT (environment, taxpayer_id, endpoint_id, what) DO UPDATE SET
	position_id = CASE WHEN excluded.position_at <= replays.position_at THEN excluded.position_id ELSE replays.position_id END,
	position_at = CASE WHEN excluded.position_at <= replays.position_at THEN excluded.position_at ELSE replays.position_at END,
	until_at = CASE WHEN excluded.until_at >= replays.until_at THEN excluded.until_at ELSE replays.until_at END`

// Replays lists the replays of an environment that can go on, the oldest first. The
// replays of a disabled endpoint wait until it is enabled, as its deliveries do.
func (r reader) Replays(ctx context.Context, env fiscal.Environment) ([]Replay, error) {
	return collect(r.rows(ctx, "list replays", `
		SELECT r.environment, r.taxpayer_id, r.endpoint_id, r.what
		FROM replays r JOIN endpoints e ON e.id = r.endpoint_id
		WHERE r.environment = $1 AND e.status <> 'disabled'
		ORDER BY r.created_at, r.endpoint_id, r.what`, env), func(one *Replay) []any { return []any{&one.Environment, &one.TaxpayerID, &one.EndpointID, &one.What} })
}

// ReplayProgress is the effect of a batch of a replay.
type ReplayProgress struct {
	Events     int64 // events of the batch; 0: the batch did nothing
	Deliveries int64 // deliveries that the batch made due
	Total      int64 // deliveries that all batches of the replay made due
	Ended      bool  // the replay is done, or its endpoint was deleted
}

// RunReplayBatch makes the next events of a replay due, at most ReplayBatch, in one
// transaction that also moves the position of the replay. It does nothing while another
// node works on the replay, after the replay has ended, and while the endpoint is
// disabled. A replay of a deleted endpoint ends.
func (s *Store) RunReplayBatch(ctx context.Context, r Replay, now time.Time) (done ReplayProgress, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		done = ReplayProgress{}
		p, err := tx.lockReplay(ctx, r)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		case p.status == EndpointDisabled:
			return nil
		}
		var page []eventKey
		if p.status == EndpointEnabled {
			if page, err = tx.replayPage(ctx, r, p); err != nil {
				return err
			}
		}
		if len(page) == 0 {
			done = ReplayProgress{Total: p.done, Ended: true}
			return tx.endReplay(ctx, r)
		}
		made, err := tx.makeDue(ctx, r, page, now)
		if err != nil {
			return err
		}
		done = ReplayProgress{Events: int64(len(page)), Deliveries: made, Total: p.done + made}
		return tx.moveReplay(ctx, r, page[len(page)-1], done.Total)
	})
	if err != nil {
		return ReplayProgress{}, err
	}
	return done, nil
}

// eventKey names an event by its place in the order of events. The events of a replay of
// failed deliveries have no times.
type eventKey struct {
	at int64
	id string
}

// replayPosition is how far a replay is.
type replayPosition struct {
	after  eventKey
	until  int64 // the time of the last event
	done   int64
	status EndpointStatus // of the endpoint
}

// lockReplay reads a replay and locks its row. The error is ErrNotFound when the replay
// has ended or another node has the lock.
func (tx *Tx) lockReplay(ctx context.Context, r Replay) (replayPosition, error) {
	return one(tx.rows(ctx, "lock replay", `
		SELECT position_at, position_id, until_at, done, (SELECT e.status FROM endpoints e WHERE e.id = replays.endpoint_id)
		FROM replays
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND what = $4 `+tx.d.SkipLocked,
		r.Environment, r.TaxpayerID, r.EndpointID, r.What), func(p *replayPosition) []any {
		return []any{&p.after.at, &p.after.id, &p.until, &p.done, &p.status}
	})
}

// replayPage returns the next events of a replay. It also returns events of kinds that
// the endpoint does not ask for, because the search for the next event of a rare kind
// could take long.
func (tx *Tx) replayPage(ctx context.Context, r Replay, p replayPosition) ([]eventKey, error) {
	query, args := `
		SELECT at, id FROM events
		WHERE environment = $1 AND taxpayer_id = $2 AND at >= $3 AND at <= $5 AND (at, id) > ($3, $4)
		ORDER BY at, id LIMIT $6`, []any{r.Environment, r.TaxpayerID, p.after.at, p.after.id, p.until, ReplayBatch}
	if r.What == replayFailed {
		query, args = `
			SELECT 0, event_id FROM webhook_deliveries
			WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND state = 'failed' AND event_id > $4
			ORDER BY event_id LIMIT $5`, []any{r.Environment, r.TaxpayerID, r.EndpointID, p.after.id, ReplayBatch}
	}
	return collect(tx.rows(ctx, "read events of a replay", query, args...), func(e *eventKey) []any { return []any{&e.at, &e.id} })
}

// makeDue makes the events of a page due for the endpoint of a replay, and returns how
// many deliveries it has added or changed.
func (tx *Tx) makeDue(ctx context.Context, r Replay, page []eventKey, now time.Time) (int64, error) {
	ids := make([]string, len(page))
	for i, e := range page {
		ids[i] = e.id
	}
	first, last := page[0], page[len(page)-1]
	list, values := placeholdersFrom(7, ids)
	key := []any{string(r.Environment), r.TaxpayerID, r.EndpointID, micros(now)}
	// The list of ids is exact. The range keeps the statement short when the planner
	// takes another index than the index of the ids.
	if r.What == replayFailed {
		return tx.run(ctx, "replay failed deliveries", do(`
			UPDATE webhook_deliveries SET state = 'pending', attempt = 0, run_at = $4
			WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND state = 'failed'
				AND event_id >= $5 AND event_id <= $6 AND event_id IN (`+list+`)`,
			append(append(key, first.id, last.id), values...)...))
	}
	existing := startOver
	if r.What == replayMissed {
		existing = `ON CONFLICT (endpoint_id, event_id) DO NOTHING`
	}
	return tx.run(ctx, "replay events", do(`
		INSERT INTO webhook_deliveries (`+deliveryColumns+`)
		SELECT `+freshDelivery+`, cast($4 AS bigint), '', 0, cast($4 AS bigint)
		FROM events n JOIN endpoints e ON `+wanted+`
		WHERE n.environment = $1 AND n.taxpayer_id = $2 AND e.id = $3 AND n.at >= $5 AND n.at <= $6 AND n.id IN (`+list+`)
		`+existing, append(append(key, first.at, last.at), values...)...))
}

// moveReplay stores the position after a batch.
func (tx *Tx) moveReplay(ctx context.Context, r Replay, to eventKey, total int64) error {
	return tx.exec(ctx, "move replay", `
		UPDATE replays SET position_at = $5, position_id = $6, done = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND what = $4`,
		string(r.Environment), r.TaxpayerID, r.EndpointID, r.What, to.at, to.id, total)
}

// endReplay deletes a replay.
func (tx *Tx) endReplay(ctx context.Context, r Replay) error {
	return tx.exec(ctx, "end replay", `
		DELETE FROM replays WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND what = $4`,
		string(r.Environment), r.TaxpayerID, r.EndpointID, r.What)
}
