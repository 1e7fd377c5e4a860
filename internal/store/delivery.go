package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DeliveryState is what became of telling an endpoint something.
type DeliveryState string

// The states of a delivery. A failed one is attempted no more, unless it is
// replayed.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed"
)

// Delivery is a notice on its way to an endpoint. One under way is held by a
// lease, as a job is.
type Delivery struct {
	Scope
	EndpointID string
	EventID    string
	Kind       string
	DocumentID string
	Sequence   int64
	State      DeliveryState
	Attempt    int64 // how many are recorded
	RunAt      time.Time
	Lease      string
	LeaseUntil time.Time
	CreatedAt  time.Time
	Failing    bool // when it was claimed: the endpoint's last attempt had failed
}

const deliveryColumns = `endpoint_id, notice_id, environment, taxpayer_id, kind, document_id, sequence, state, attempt,
	run_at, lease, lease_until, created_at`

func scanDelivery(r row) (Delivery, error) {
	var d Delivery
	var run, lease, created int64
	err := r.Scan(&d.EndpointID, &d.EventID, &d.Environment, &d.TaxpayerID, &d.Kind, &d.DocumentID, &d.Sequence, &d.State, &d.Attempt,
		&run, &d.Lease, &lease, &created)
	d.RunAt, d.LeaseUntil, d.CreatedAt = fromMicros(run), fromMicros(lease), fromMicros(created)
	return d, err
}

// NextDelivery tells when the next delivery to an enabled endpoint of an
// environment comes due after a moment. ErrNotFound: none does.
func (r reader) NextDelivery(ctx context.Context, env fiscal.Environment, after time.Time) (time.Time, error) {
	var at sql.NullInt64
	err := r.q.QueryRowContext(ctx, waitingEndpoints+`
		SELECT min(due) FROM (
			SELECT (SELECT d.run_at FROM deliveries d
				WHERE d.endpoint_id = e.id AND d.state = 'pending' AND d.run_at > $2
				ORDER BY d.run_at, d.sequence, d.notice_id LIMIT 1) AS due
			FROM waiting JOIN endpoints e ON e.id = waiting.id
			WHERE e.environment = $1 AND e.taxpayer_id <> '' AND e.status = 'enabled') AS next`,
		env, micros(after)).Scan(&at)
	if err == nil && !at.Valid {
		err = sql.ErrNoRows
	}
	return fromNull(at), r.d.wrap("next delivery", err)
}

// DeliveriesOf lists the deliveries of a notice, by endpoint.
func (r reader) DeliveriesOf(ctx context.Context, scope Scope, noticeID string) ([]Delivery, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+deliveryColumns+` FROM deliveries d
		WHERE environment = $1 AND taxpayer_id = $2 AND notice_id = $3
			AND endpoint_id IN (SELECT id FROM endpoints WHERE environment = $1 AND taxpayer_id = $2)
		ORDER BY endpoint_id`, scope.Environment, scope.TaxpayerID, noticeID)
	if err != nil {
		return nil, r.d.wrap("read deliveries", err)
	}
	return collect(r.d, "read deliveries", rows, scanDelivery)
}

// DeliveryOutcome is how an attempt ended and what follows from it.
type DeliveryOutcome struct {
	Attempt DeliveryAttempt
	State   DeliveryState
	RunAt   time.Time // when it is due again, if it is pending
	Busy    bool      // the endpoint has too much to do: half as many at a time
	Gone    bool      // the endpoint wants no more
	// RestUntil is when an endpoint that goes on failing is next tried.
	RestUntil time.Time
	// DisableAfter is how long an endpoint may fail.
	DisableAfter time.Duration
	// Disabled is told to the taxpayer's other endpoints if this is what
	// disables the endpoint.
	Disabled Event
}

// EnoughFailures is how many failures in a row make an endpoint one that is
// probed, and one that may be disabled.
const EnoughFailures = 10

// Why an endpoint was disabled.
const (
	DisabledGone    = "gone"    // it has answered so
	DisabledFailing = "failing" // it has failed for long
)

// RecordDelivery stores how an attempt ended, moves the delivery, and counts for
// or against its endpoint, which it may disable: it tells whether it did. The
// error is ErrLeaseLost when the delivery is no longer held, and nothing is
// stored.
func (s *Store) RecordDelivery(ctx context.Context, d Delivery, o DeliveryOutcome) (disabled bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		disabled = false
		err := tx.changeOne(ctx, "move delivery", ErrLeaseLost, statement{`
			UPDATE deliveries SET state = $6, attempt = attempt + 1, run_at = $7, lease = '', lease_until = 0
			WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND notice_id = $4 AND lease = $5`, []any{
			string(d.Environment), d.TaxpayerID, d.EndpointID, d.EventID, d.Lease, string(o.State), micros(o.RunAt),
		}})
		if err != nil {
			return err
		}
		attempt := o.Attempt
		if o.State == DeliveryDelivered {
			err = tx.recordSuccess(ctx, d)
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

// recordSuccess counts a success of an endpoint. One that is as good as can be is not
// written.
func (tx *Tx) recordSuccess(ctx context.Context, d Delivery) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE endpoints SET failures = 0, failing_since = NULL, last_failure_at = NULL, rest_until = 0,
			concurrency = CASE WHEN concurrency < $4 THEN concurrency + 1 ELSE concurrency END
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND (failures > 0 OR concurrency < $4)`,
		d.Environment, d.TaxpayerID, d.EndpointID, MaxConcurrency)
	return tx.d.wrap("credit endpoint", err)
}

// recordFailure counts a failure of an endpoint, and disables it if it is one too many.
func (tx *Tx) recordFailure(ctx context.Context, d Delivery, o DeliveryOutcome) (disabled bool, err error) {
	busy := 0
	if o.Busy {
		busy = 1
	}
	var status EndpointStatus
	var failures, since int64
	err = tx.q.QueryRowContext(ctx, `
		UPDATE endpoints SET failures = failures + 1, failing_since = coalesce(failing_since, $4), last_failure_at = $4, rest_until = $5,
			concurrency = CASE WHEN concurrency > 1 AND $6 = 1 THEN concurrency / 2 ELSE concurrency END
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3
		RETURNING status, failures, failing_since`,
		d.Environment, d.TaxpayerID, d.EndpointID, micros(o.Attempt.At), micros(o.RestUntil), busy).Scan(&status, &failures, &since)
	if err != nil {
		return false, tx.d.wrap("debit endpoint", err)
	}
	reason := DisabledFailing
	if o.Gone {
		reason = DisabledGone
	}
	long := failures >= EnoughFailures && o.Attempt.At.Sub(fromMicros(since)) >= o.DisableAfter
	if status != EndpointEnabled || (!o.Gone && !long) {
		return false, nil
	}
	if err := tx.DisableEndpoint(ctx, d.Scope, d.EndpointID, reason, o.Attempt.At); err != nil {
		return false, err
	}
	return true, tx.AddEvent(ctx, o.Disabled)
}

// HoldDelivery makes sure that a delivery is still held, and goes on holding it.
func (tx *Tx) HoldDelivery(ctx context.Context, d Delivery, until time.Time) error {
	return tx.changeOne(ctx, "hold delivery", ErrLeaseLost, statement{`
		UPDATE deliveries SET lease_until = $6
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND notice_id = $4 AND lease = $5`, []any{
		string(d.Environment), d.TaxpayerID, d.EndpointID, d.EventID, d.Lease, micros(until),
	}})
}

// ReleaseDelivery lets go of a delivery that was not attempted, until a moment.
func (tx *Tx) ReleaseDelivery(ctx context.Context, d Delivery, runAt time.Time) error {
	return tx.changeOne(ctx, "release delivery", ErrLeaseLost, statement{`
		UPDATE deliveries SET run_at = $6, lease = '', lease_until = 0
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND notice_id = $4 AND lease = $5`, []any{
		string(d.Environment), d.TaxpayerID, d.EndpointID, d.EventID, d.Lease, micros(runAt),
	}})
}
