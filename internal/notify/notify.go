// Package notify sends events to integrators. It manages their webhook endpoints and the
// sources of inbound messages, delivers events to endpoints, and reads the feed. It
// creates only the events about endpoints; each other event is created with the change
// that it reports.
package notify

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// newEndpointEvent returns an event about an endpoint. It fails when the event cannot be
// encoded.
func newEndpointEvent(kind string, e store.Endpoint, reason string, at time.Time) (store.Event, error) {
	owner := event.Owner{Environment: e.Environment, TaxpayerID: e.TaxpayerID}
	made, err := event.New(owner, kind, at, event.NewEndpoint(e.ID, e.URL, reason))
	return store.Event{Scope: e.Scope, ID: made.ID, Kind: made.Kind, At: made.At, Body: made.Body}, err
}
