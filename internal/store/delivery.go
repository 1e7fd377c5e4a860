package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery. The sender does not attempt a failed one again; a replay
// makes it pending.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed"
)

// Delivery is the sending of an event to an endpoint. While a sender works on it, the
// sender holds a lease, as a worker does with a job.
type Delivery struct {
	Scope
	EndpointID string
	EventID    string
	Kind       string
	DocumentID string
	Revision   int64 // revision of the document
	State      DeliveryState
	Attempt    int64 // how many attempts are recorded
	RunAt      time.Time
	Lease      string
	LeaseUntil time.Time
	CreatedAt  time.Time
	Failing    bool // the last attempt to the endpoint had failed when the delivery was claimed
	Ahead      bool // a claim took it ahead: the sender must wait until an attempt to the endpoint ends
	// Body is the body of the event; nil when a claim did not read it.
	Body []byte
	// Endpoint is nil when a claim did not read it.
	Endpoint *Endpoint
}

const deliveryColumns = `endpoint_id, event_id, environment, taxpayer_id, kind, document_id, revision, state, attempt,
	run_at, lease, lease_until, created_at`

func (d *Delivery) columns() []any {
	return []any{
		&d.EndpointID, &d.EventID, &d.Environment, &d.TaxpayerID, &d.Kind, &d.DocumentID, &d.Revision, &d.State,
		&d.Attempt, instant(&d.RunAt), &d.Lease, instant(&d.LeaseUntil), instant(&d.CreatedAt),
	}
}

// NextDelivery returns when the next delivery to an enabled endpoint of the
// environment becomes due after the given moment. The error is ErrNotFound when there
// is none.
func (r reader) NextDelivery(ctx context.Context, env fiscal.Environment, after time.Time) (time.Time, error) {
	at, err := one(r.rows(ctx, "read the next delivery", waitingEndpoints+`
		SELECT min(due) FROM (
			SELECT (SELECT d.run_at FROM webhook_deliveries d
				WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.run_at > $2
				ORDER BY d.run_at, d.revision, d.event_id LIMIT 1) AS due
			FROM waiting JOIN endpoints e ON e.id = waiting.id
			WHERE e.environment = $1 AND e.status = 'enabled') AS next`,
		env, micros(after)), func(at *time.Time) []any { return []any{instant(at)} })
	if err == nil && at.IsZero() {
		err = ErrNotFound
	}
	return at, err
}

// DeliveryOutcome is the result of an attempt and its effects.
type DeliveryOutcome struct {
	Attempt DeliveryAttempt
	State   DeliveryState
	RunAt   time.Time // when a pending delivery is due again
	Busy    bool      // the endpoint is overloaded: halve its concurrent deliveries
	Gone    bool      // the endpoint answered that it is gone: disable it now
	// RestUntil is when the sender next tries an endpoint that has failed too
	// often.
	RestUntil time.Time
	// DisableAfter is how long an endpoint may fail before it is disabled.
	DisableAfter time.Duration
	// Disabled is the event for the taxpayer's other endpoints. It is stored
	// when this attempt disables the endpoint.
	Disabled Event
}

// FailureThreshold is the number of failures in a row after which an endpoint gets only
// one delivery at a time, and can be disabled.
const FailureThreshold = 10

// The reasons for which an endpoint is disabled.
const (
	DisabledGone    = "gone"    // the endpoint answered that it is gone
	DisabledFailing = "failing" // all attempts failed for a long time
)

// RecordDelivery stores the result of an attempt, the new state of the delivery, and
// the success or failure of the endpoint. It may disable the endpoint, and reports
// whether it did. The error is ErrLeaseLost when another sender has the delivery; then
// it stores nothing.
func (s *Store) RecordDelivery(ctx context.Context, d Delivery, o DeliveryOutcome) (disabled bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		disabled = false
		err := tx.writeOne(ctx, "record delivery", ErrLeaseLost, endAttempt(d, o))
		if err != nil {
			return err
		}
		attempt := o.Attempt
		if o.State == DeliveryDelivered {
			_, err = tx.write(ctx, "record success of endpoint", recordSuccess(d))
		} else if disabled, err = tx.recordFailure(ctx, d, o); disabled {
			attempt.NextAt = time.Time{}
		}
		if err != nil {
			return err
		}
		return tx.AddDeliveryAttempt(ctx, attempt)
	})
	return disabled && err == nil, err
}

// endAttempt stores the state of a delivery after an attempt, for as long as the sender
// holds its lease. A replay during the attempt has changed run_at; when the attempt has
// failed, the delivery stays as the replay has made it.
func endAttempt(d Delivery, o DeliveryOutcome) statement {
	if o.State == DeliveryDelivered {
		return do(`
		UPDATE webhook_deliveries SET state = 'delivered', attempt = attempt + 1, lease = '', lease_until = 0 `+whereDeliveryHeld, d.heldArgs()...)
	}
	return do(`
		UPDATE webhook_deliveries SET state = CASE WHEN run_at = $8 THEN $6 ELSE state END, attempt = CASE WHEN run_at = $8 THEN attempt + 1 ELSE attempt END,
			run_at = CASE WHEN run_at = $8 THEN cast($7 AS bigint) ELSE run_at END, lease = '', lease_until = 0 `+whereDeliveryHeld,
		d.heldArgs(string(o.State), micros(o.RunAt), micros(d.RunAt))...)
}

// recordSuccess resets the failures of an endpoint and raises its concurrency by one.
// It does not write when there is nothing to change.
func recordSuccess(d Delivery) statement {
	return do(`
		UPDATE endpoints SET failures = 0, failing_since = NULL, last_failure_at = NULL, rest_until = 0,
			concurrency = CASE WHEN concurrency < $4 THEN concurrency + 1 ELSE concurrency END
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND (failures > 0 OR concurrency < $4)`,
		string(d.Environment), d.TaxpayerID, d.EndpointID, MaxConcurrency)
}

// recordFailure counts a failure of an endpoint. It disables the endpoint when the
// endpoint is gone, or has failed for too long.
func (tx *Tx) recordFailure(ctx context.Context, d Delivery, o DeliveryOutcome) (disabled bool, err error) {
	e, err := one(tx.rows(ctx, "record failure of endpoint", `
		UPDATE endpoints SET failures = failures + 1, failing_since = coalesce(failing_since, $4), last_failure_at = $4, rest_until = $5,
			concurrency = CASE WHEN concurrency > 1 AND $6 = 1 THEN concurrency / 2 ELSE concurrency END
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3
		RETURNING status, failures, failing_since`,
		d.Environment, d.TaxpayerID, d.EndpointID, micros(o.Attempt.At), micros(o.RestUntil), oneIf(o.Busy)), func(e *Endpoint) []any { return []any{&e.Status, &e.Failures, instant(&e.FailingSince)} })
	if err != nil {
		return false, err
	}
	reason := DisabledFailing
	if o.Gone {
		reason = DisabledGone
	}
	long := e.Failures >= FailureThreshold && o.Attempt.At.Sub(e.FailingSince) >= o.DisableAfter
	if e.Status != EndpointEnabled || (!o.Gone && !long) {
		return false, nil
	}
	if err := tx.DisableEndpoint(ctx, d.Scope, d.EndpointID, reason, o.Attempt.At); err != nil {
		return false, err
	}
	return true, tx.AddEvent(ctx, o.Disabled)
}

// whereDeliveryHeld selects a delivery for as long as the sender holds its lease.
const whereDeliveryHeld = `WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND event_id = $4 AND lease = $5`

// heldArgs returns the arguments of whereDeliveryHeld, followed by more.
func (d Delivery) heldArgs(more ...any) []any {
	return append([]any{string(d.Environment), d.TaxpayerID, d.EndpointID, d.EventID, d.Lease}, more...)
}

// HoldDelivery extends the lease of a delivery. The error is ErrLeaseLost when another
// sender has the delivery.
func (tx *Tx) HoldDelivery(ctx context.Context, d Delivery, until time.Time) error {
	return tx.writeOne(ctx, "hold delivery", ErrLeaseLost, do(`
		UPDATE webhook_deliveries SET lease_until = $6 `+whereDeliveryHeld, d.heldArgs(micros(until))...))
}

// ReleaseDelivery gives back a delivery without an attempt. It is due again at runAt.
// The error is ErrLeaseLost when another sender has the delivery.
func (tx *Tx) ReleaseDelivery(ctx context.Context, d Delivery, runAt time.Time) error {
	return tx.writeOne(ctx, "release delivery", ErrLeaseLost, releaseDelivery(d, runAt))
}

func releaseDelivery(d Delivery, runAt time.Time) statement {
	return do(`
		UPDATE webhook_deliveries SET run_at = $6, lease = '', lease_until = 0 `+whereDeliveryHeld, d.heldArgs(micros(runAt))...)
}

// ReleaseDeliveries gives back deliveries without an attempt. It does not change those that
// another sender has.
func (s *Store) ReleaseDeliveries(ctx context.Context, some []Delivery) error {
	statements := make([]statement, 0, len(some))
	for _, d := range inLockOrder(some, func(d Delivery) Delivery { return d }) {
		statements = append(statements, releaseDelivery(d, d.RunAt))
	}
	return s.d.wrap("release deliveries", s.Batch(ctx, statements, func([]int64) error { return nil }))
}
