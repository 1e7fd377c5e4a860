package store

import (
	"context"
	"time"
)

// DeliveryAttempt is one request to an endpoint: an attempt of a delivery, or a test
// event.
type DeliveryAttempt struct {
	Scope
	ID         string
	EndpointID string
	EventID    string
	Kind       string
	Number     int64 // of the attempt, counted from 1
	At         time.Time
	Took       time.Duration
	HTTPStatus int64     // 0: the endpoint did not answer
	Error      string    // its class; empty: the endpoint accepted the event
	Answer     []byte    // the beginning of the endpoint's answer
	NextAt     time.Time // zero: no further attempt
}

// AddDeliveryAttempt adds an attempt to the log of an endpoint.
func (tx *Tx) AddDeliveryAttempt(ctx context.Context, a DeliveryAttempt) error {
	_, err := tx.write(ctx, "add delivery attempt", addDeliveryAttempts([]DeliveryAttempt{a})[0])
	return err
}

// addDeliveryAttempts adds each attempt once. After a commit with an unknown result the
// sender records an attempt again, with the same id. The number of rows of a statement is a
// power of two, so that the engine has few different ones to prepare.
func addDeliveryAttempts(some []DeliveryAttempt) (all []statement) {
	for len(some) > 0 {
		n := 1
		for 2*n <= len(some) {
			n *= 2
		}
		var args []any
		for _, a := range some[:n] {
			args = append(args, a.ID, string(a.Environment), a.TaxpayerID, a.EndpointID, a.EventID, a.Kind, a.Number, micros(a.At), a.Took.Microseconds(),
				a.HTTPStatus, a.Error, append([]byte{}, a.Answer...), optionalMicros(a.NextAt))
		}
		all = append(all, do(`
		INSERT INTO webhook_attempts (id, environment, taxpayer_id, endpoint_id, event_id, kind, number, at, took_us, http_status,
			error, answer, next_at)
		VALUES `+valueRows(n, 13)+` ON CONFLICT DO NOTHING`, args...))
		some = some[n:]
	}
	return all
}

// DeliveryLog lists the attempts of an endpoint, the newest first. before is the id of
// the attempt before the first one of the page; empty: start with the newest.
func (r reader) DeliveryLog(ctx context.Context, scope Scope, endpointID, before string, limit int) ([]DeliveryAttempt, error) {
	return collect(r.rows(ctx, "read delivery log", `
		SELECT `+attemptColumns+` FROM webhook_attempts
		WHERE environment = $1 AND taxpayer_id = $2 AND endpoint_id = $3 AND (cast($4 AS text) = '' OR id < $4)
		ORDER BY id DESC LIMIT $5`, scope.Environment, scope.TaxpayerID, endpointID, before, limit), func(a *DeliveryAttempt) []any {
		a.Scope, a.EndpointID = scope, endpointID
		return a.columns()
	})
}

const attemptColumns = `id, event_id, kind, number, at, took_us, http_status, error, answer, next_at`

func (a *DeliveryAttempt) columns() []any {
	return []any{
		&a.ID, &a.EventID, &a.Kind, &a.Number, instant(&a.At), elapsed(&a.Took), &a.HTTPStatus, &a.Error, &a.Answer, instant(&a.NextAt),
	}
}
