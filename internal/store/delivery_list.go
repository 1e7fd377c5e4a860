package store

import "context"

// maxDeliveries is how many deliveries of a document, and attempts of a delivery, a list
// has at most.
const maxDeliveries = ` LIMIT 200`

// DeliveriesOfDocument lists the deliveries of the events of a document, by event and
// endpoint. Delivered ones are kept for 30 days.
func (r reader) DeliveriesOfDocument(ctx context.Context, scope Scope, documentID string) ([]Delivery, error) {
	return collect(r.rows(ctx, "read deliveries of a document", `
		SELECT `+deliveryColumns+` FROM webhook_deliveries
		WHERE document_id = $3 AND document_id <> '' AND environment = $1 AND taxpayer_id = $2
		ORDER BY event_id, endpoint_id`+maxDeliveries, scope.Environment, scope.TaxpayerID, documentID), (*Delivery).columns)
}

// AttemptsOfEvent lists the attempts to deliver an event to all endpoints, the oldest
// first. They are kept for 30 days.
func (r reader) AttemptsOfEvent(ctx context.Context, scope Scope, eventID string) ([]DeliveryAttempt, error) {
	return collect(r.rows(ctx, "read attempts of an event", `
		SELECT endpoint_id, `+attemptColumns+` FROM webhook_attempts
		WHERE event_id = $3 AND environment = $1 AND taxpayer_id = $2 ORDER BY at, id`+maxDeliveries,
		scope.Environment, scope.TaxpayerID, eventID), func(a *DeliveryAttempt) []any {
		a.Scope = scope
		return append([]any{&a.EndpointID}, a.columns()...)
	})
}
