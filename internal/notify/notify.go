// Package notify brings events to integrators: it manages their webhook endpoints
// and the sources of inbound messages, delivers events, and reads the feed. The code
// that makes a change writes its events.
package notify

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// newEndpointEvent returns an event about an endpoint.
func newEndpointEvent(kind string, e store.Endpoint, reason string, at time.Time) (store.Event, error) {
	owner := event.Owner{Environment: e.Environment, TaxpayerID: e.TaxpayerID}
	made, err := event.New(owner, kind, at, event.NewEndpoint(e.ID, e.URL, reason))
	return store.Event{Scope: e.Scope, ID: made.ID, Kind: made.Kind, At: made.At, Body: made.Body}, err
}
