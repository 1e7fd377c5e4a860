package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// EndpointStatus says whether the service sends events to an endpoint.
type EndpointStatus string

// The statuses of a webhook endpoint.
const (
	EndpointEnabled  EndpointStatus = "enabled"
	EndpointDisabled EndpointStatus = "disabled"
)

// WebhookEndpoint is an address that receives events.
type WebhookEndpoint struct {
	ID          string         `json:"id"`
	URL         string         `json:"url"`
	Events      []EventType    `json:"events"`
	Description string         `json:"description"`
	Status      EndpointStatus `json:"status"`
	Secret      string         `json:"secret"` // signs the events; set only when it is new
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"`
}

// WebhookEndpointRequest is the body of a creation. Events are kinds of events, or
// AllEvents.
type WebhookEndpointRequest struct {
	URL         string      `json:"url"`
	Events      []EventType `json:"events"`
	Description string      `json:"description,omitempty"`
}

// CreateWebhookEndpoint adds an endpoint. The answer contains the secret that signs
// its events. The idempotency key is as in CreateInvoice.
func (c *Client) CreateWebhookEndpoint(ctx context.Context, idempotencyKey string, r WebhookEndpointRequest, opts ...CallOption) (Response[WebhookEndpoint], error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Response[WebhookEndpoint]{}, fmt.Errorf("client: encode endpoint: %w", err)
	}
	return create[WebhookEndpoint](ctx, c, call{
		method: http.MethodPost, path: "/webhook-endpoints", body: body, key: idempotencyKey, want: http.StatusCreated,
	}.with(opts))
}

// WebhookEndpoint reads one endpoint.
func (c *Client) WebhookEndpoint(ctx context.Context, id string) (Response[WebhookEndpoint], error) {
	return command[WebhookEndpoint](ctx, c, id, call{method: http.MethodGet})
}

// PageOptions select a page of a list. The zero value is the first page.
type PageOptions struct {
	Cursor string // NextCursor of the previous page
	Limit  int    // items per page, 1 to 100; 0 for the default of the service
}

func (o PageOptions) query() url.Values {
	query := url.Values{}
	if o.Cursor != "" {
		query.Set("cursor", o.Cursor)
	}
	if o.Limit != 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	return query
}

// ListWebhookEndpoints reads one page of endpoints, newest first.
func (c *Client) ListWebhookEndpoints(ctx context.Context, o PageOptions) (Response[[]WebhookEndpoint], error) {
	return fetch[[]WebhookEndpoint](ctx, c, call{method: http.MethodGet, path: "/webhook-endpoints", query: o.query(), want: http.StatusOK})
}

// AllWebhookEndpoints yields the endpoints of every page of the list. It stops after the
// first error, which it yields with an empty endpoint.
func (c *Client) AllWebhookEndpoints(ctx context.Context, o PageOptions) iter.Seq2[WebhookEndpoint, error] {
	return pages(o.Cursor, func(cursor string) (Response[[]WebhookEndpoint], error) {
		return c.ListWebhookEndpoints(ctx, PageOptions{cursor, o.Limit})
	})
}

// DeleteWebhookEndpoint deletes an endpoint.
func (c *Client) DeleteWebhookEndpoint(ctx context.Context, id string) error {
	path, err := endpointPath(id)
	if err != nil {
		return err
	}
	_, err = c.send(ctx, call{method: http.MethodDelete, path: path, want: http.StatusNoContent, limit: maxError})
	return err
}

// RotateWebhookSecret gives an endpoint a new secret, which the answer contains. The
// old secret signs too for a day. The client does not retry when the answer is lost,
// because a retry would rotate again.
func (c *Client) RotateWebhookSecret(ctx context.Context, id string) (Response[WebhookEndpoint], error) {
	return command[WebhookEndpoint](ctx, c, id, call{method: http.MethodPost, path: "/rotate-secret", once: true})
}

// EnableWebhookEndpoint enables a disabled endpoint.
func (c *Client) EnableWebhookEndpoint(ctx context.Context, id string) (Response[WebhookEndpoint], error) {
	return command[WebhookEndpoint](ctx, c, id, call{method: http.MethodPost, path: "/enable"})
}

// WebhookTest is the result of a test event.
type WebhookTest struct {
	Delivered  bool   `json:"delivered"`
	HTTPStatus int    `json:"http_status"` // 0 without an answer
	Error      string `json:"error"`       // class of the failure
}

// TestWebhookEndpoint makes the service send one test event.
func (c *Client) TestWebhookEndpoint(ctx context.Context, id string) (Response[WebhookTest], error) {
	return command[WebhookTest](ctx, c, id, call{method: http.MethodPost, path: "/test", once: true})
}

// Replay selects the events to send again: one, all since an instant, or all that
// failed or were missed. Set exactly one field.
type Replay struct {
	EventID string
	Since   time.Time
	Failed  bool
}

// ReplayWebhookEvents makes the service send events again, and returns how many.
func (c *Client) ReplayWebhookEvents(ctx context.Context, id string, r Replay) (Response[int64], error) {
	wire := map[string]any{}
	if r.EventID != "" {
		wire["event_id"] = r.EventID
	}
	if !r.Since.IsZero() {
		wire["since"] = r.Since.Format(time.RFC3339Nano)
	}
	if r.Failed {
		wire["failed"] = true
	}
	body, err := json.Marshal(wire)
	if err != nil {
		return Response[int64]{}, fmt.Errorf("client: encode replay: %w", err)
	}
	got, err := command[struct {
		Events int64 `json:"events"`
	}](ctx, c, id, call{method: http.MethodPost, path: "/replay", body: body, want: http.StatusAccepted})
	return Response[int64]{Data: got.Data.Events, Meta: got.Meta}, err
}

// WebhookDelivery is one attempt to deliver an event.
type WebhookDelivery struct {
	EventID       string    `json:"event_id"`
	Type          EventType `json:"type"`
	Attempt       int       `json:"attempt"`
	AttemptedAt   time.Time `json:"attempted_at"`
	NextAttemptAt time.Time `json:"next_attempt_at"` // zero without a next attempt
	HTTPStatus    int       `json:"http_status"`     // 0 without an answer
	Error         string    `json:"error"`           // empty when the event was delivered
}

// WebhookDeliveries reads one page of an endpoint's delivery attempts, newest first.
func (c *Client) WebhookDeliveries(ctx context.Context, id string, o PageOptions) (Response[[]WebhookDelivery], error) {
	return command[[]WebhookDelivery](ctx, c, id, call{method: http.MethodGet, path: "/deliveries", query: o.query()})
}

// AllWebhookDeliveries yields the delivery attempts of every page of an endpoint's list.
// It stops after the first error, which it yields with an empty attempt.
func (c *Client) AllWebhookDeliveries(ctx context.Context, id string, o PageOptions) iter.Seq2[WebhookDelivery, error] {
	return pages(o.Cursor, func(cursor string) (Response[[]WebhookDelivery], error) {
		return c.WebhookDeliveries(ctx, id, PageOptions{cursor, o.Limit})
	})
}

// command sends a call whose path is relative to an endpoint.
func command[T any](ctx context.Context, c *Client, id string, l call) (Response[T], error) {
	path, err := endpointPath(id)
	if err != nil {
		return Response[T]{}, err
	}
	l.path = path + l.path
	if l.want == 0 {
		l.want = http.StatusOK
	}
	return fetch[T](ctx, c, l)
}

func endpointPath(id string) (string, error) {
	if !isUUID(id) {
		return "", fmt.Errorf("client: webhook endpoint id %q is not a UUID", id)
	}
	return "/webhook-endpoints/" + id, nil
}
