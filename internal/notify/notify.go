// Package notify sends events to integrators. It manages their webhook endpoints and the
// sources of inbound messages, delivers events to endpoints, and reads the feed. It
// creates only the events about endpoints; each other event is created with the change
// that it reports.
package notify

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// newEndpointEvent returns an event about an endpoint. It fails when the event cannot be
// encoded.
func newEndpointEvent(kind string, e store.Endpoint, reason string, at time.Time) (store.Event, error) {
	owner := event.Owner{Environment: e.Environment, TaxpayerID: e.TaxpayerID}
	made, err := event.New(owner, kind, at, event.NewEndpoint(e.ID, e.URL, reason))
	return store.Event{Scope: e.Scope, ID: made.ID, Kind: made.Kind, At: made.At, Body: made.Body}, err
}

// EndpointResource is a webhook endpoint as integrators see it. It is defined here
// because the answer to a creation is stored with the endpoint. Secret is set only in
// the answers that create or rotate it.
type EndpointResource struct {
	ID          string               `json:"id"`
	URL         string               `json:"url"`
	Events      []string             `json:"events"`
	Description *string              `json:"description"`
	Status      store.EndpointStatus `json:"status"`
	Secret      string               `json:"secret,omitempty"`
	CreatedAt   string               `json:"created_at"`
	UpdatedAt   string               `json:"updated_at"`
}

// NewEndpointResource returns the resource of a stored endpoint. The zero secret leaves
// the member out.
func NewEndpointResource(e store.Endpoint, secret webhook.Secret) EndpointResource {
	return EndpointResource{
		ID: e.ID, URL: e.URL, Events: e.Kinds, Description: envelope.NullIfEmpty(e.Description), Status: e.Status,
		Secret: secret.Reveal(), CreatedAt: fiscal.FormatInstant(e.CreatedAt), UpdatedAt: fiscal.FormatInstant(e.UpdatedAt),
	}
}

// EndpointPath returns the address of an endpoint below the base URL.
func EndpointPath(e store.Endpoint) string {
	return "/v1/taxpayers/" + e.TaxpayerID + "/webhook-endpoints/" + e.ID
}

// withoutSecret returns the body of a stored answer to a creation without the secret.
func withoutSecret(body []byte) ([]byte, error) {
	var stored struct {
		Data EndpointResource `json:"data"`
		Meta envelope.Meta    `json:"meta"`
	}
	if err := json.Unmarshal(body, &stored); err != nil {
		return nil, fmt.Errorf("notify: read a stored answer: %w", err)
	}
	stored.Data.Secret = ""
	return envelope.Encode(stored.Data, stored.Meta)
}
