package store

import "context"

// maxDeliveries is how many deliveries of a document, and attempts of a delivery, a list
// has at most.
const maxDeliveries = ` LIMIT 200`

// DeliveriesOfDocument lists the deliveries of the events of a document, by event and
// endpoint. Delivered ones are kept for 30 days.
func (r reader) DeliveriesOfDocument(ctx context.Context, scope Scope, documentID string) ([]Delivery, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+deliveryColumns+` FROM webhook_deliveries
		WHERE document_id = $3 AND document_id <> '' AND environment = $1 AND taxpayer_id = $2
		ORDER BY event_id, endpoint_id`+maxDeliveries, scope.Environment, scope.TaxpayerID, documentID)
	if err != nil {
		return nil, r.d.wrap("read deliveries of a document", err)
	}
	return collect(r.d, "read deliveries of a document", rows, scanDelivery)
}

// AttemptsOfEvent lists the attempts to deliver an event to all endpoints, the oldest
// first. They are kept for 30 days.
func (r reader) AttemptsOfEvent(ctx context.Context, scope Scope, eventID string) ([]DeliveryAttempt, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT endpoint_id, `+attemptColumns+` FROM webhook_attempts
		WHERE event_id = $3 AND environment = $1 AND taxpayer_id = $2 ORDER BY at, id`+maxDeliveries,
		scope.Environment, scope.TaxpayerID, eventID)
	if err != nil {
		return nil, r.d.wrap("read attempts of an event", err)
	}
	return collect(r.d, "read attempts of an event", rows, func(row row) (DeliveryAttempt, error) {
		var endpoint string
		a, err := scanAttempt(scope, "")(afterScan{row, []any{&endpoint}})
		a.EndpointID = endpoint
		return a, err
	})
}
