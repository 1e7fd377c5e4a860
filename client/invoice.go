package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Status is the status of an invoice and its fiscal document.
type Status string

// The statuses. In the sandbox Accepted is a synthetic result, not an acceptance by
// the tax authority.
const (
	Queued              Status = "queued"
	ValidationFailed    Status = "validation_failed"
	Submitted           Status = "submitted"
	Processing          Status = "processing"
	Accepted            Status = "accepted"
	AcceptedConditional Status = "accepted_conditional"
	Rejected            Status = "rejected"
	OutcomeUnknown      Status = "outcome_unknown"
	Delivered           Status = "delivered"
)

// Invoice is an invoice in the service.
type Invoice struct {
	ID               string        `json:"id"`
	TaxpayerID       string        `json:"taxpayer_id"`
	ExternalID       string        `json:"external_id"`
	ECFType          string        `json:"ecf_type"`
	Status           Status        `json:"status"`
	FiscalDocumentID string        `json:"fiscal_document_id"`
	Currency         string        `json:"currency"`
	IssueDate        string        `json:"issue_date"`
	Totals           InvoiceTotals `json:"totals"`
	CreatedAt        time.Time     `json:"created_at"`
	UpdatedAt        time.Time     `json:"updated_at"`
}

// InvoiceTotals are the amounts of an invoice.
type InvoiceTotals struct {
	Totals
	Paid    string `json:"paid"`
	Balance string `json:"balance"`
}

// CreateInvoice registers an invoice for processing. Choose one idempotency key per
// invoice and store it before the call. After any failure, send the same request
// with the same key: the answer is that of the first request, and there is no second
// invoice. With an empty key and the option WithNewKey the client makes the key.
func (c *Client) CreateInvoice(ctx context.Context, idempotencyKey string, r InvoiceRequest, opts ...CallOption) (Response[Invoice], error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Response[Invoice]{}, fmt.Errorf("client: encode invoice: %w", err)
	}
	return c.CreateInvoiceJSON(ctx, idempotencyKey, body, opts...)
}

// CreateInvoiceJSON is CreateInvoice with an encoded body.
func (c *Client) CreateInvoiceJSON(ctx context.Context, idempotencyKey string, body json.RawMessage, opts ...CallOption) (Response[Invoice], error) {
	if len(body) == 0 {
		return Response[Invoice]{}, errors.New("client: the body is empty")
	}
	return create[Invoice](ctx, c, call{
		method: http.MethodPost, path: "/invoices",
		body: body, key: idempotencyKey, want: http.StatusAccepted,
	}.with(opts))
}

// create sends a creation, under a key that is made now when the call has none.
func create[T any](ctx context.Context, c *Client, l call) (Response[T], error) {
	if l.key == "" && l.onKey != nil {
		l.key = NewIdempotencyKey()
		if err := l.onKey(l.key); err != nil {
			return Response[T]{}, fmt.Errorf("client: nothing was sent, because the idempotency key was not stored: %w", err)
		}
	}
	if err := checkIdempotencyKey(l.key); err != nil {
		return Response[T]{}, err
	}
	if len(l.body) > maxRequest {
		return Response[T]{}, fmt.Errorf("%w: request of %d bytes", ErrTooLarge, len(l.body))
	}
	made, err := fetch[T](ctx, c, l)
	made.Meta.IdempotencyKey = l.key
	return made, err
}

// NewIdempotencyKey returns a random key. Store it with the invoice before you use it.
func NewIdempotencyKey() string { return randomHex("key_") }

// CallOption changes one call.
type CallOption func(*call)

// WithWait asks the service to answer when the tax authority's verdict is known, or
// after d with the status at that time. The service waits 20 seconds at most. The
// timeout of the HTTP client must be longer than d.
func WithWait(d time.Duration) CallOption {
	return func(l *call) { l.prefer = "wait=" + strconv.Itoa(seconds(d)) }
}

// WithNewKey makes a creation without an idempotency key use a new one. The client makes
// the key once and passes it to store before it sends the first request. When store
// fails, the client sends nothing. After a crash or a failure, send the same request with
// the stored key: that can never create a second invoice.
func WithNewKey(store func(key string) error) CallOption {
	return func(l *call) { l.onKey = store }
}

// Scenario is what the sandbox does with an invoice.
type Scenario string

// The scenarios of the sandbox: the status that the document reaches, in steps of a
// second. Only type 31 can be delivered.
const (
	ScenarioSubmitted           Scenario = "submitted"
	ScenarioProcessing          Scenario = "processing"
	ScenarioAccepted            Scenario = "accepted"
	ScenarioAcceptedConditional Scenario = "accepted_conditional"
	ScenarioRejected            Scenario = "rejected"
	ScenarioOutcomeUnknown      Scenario = "outcome_unknown"
	ScenarioDelivered           Scenario = "delivered"
	ScenarioValidationFailed    Scenario = "validation_failed"
)

// WithScenario makes the sandbox take an invoice to a status. Other environments refuse
// it. Use it with CreateInvoice.
func WithScenario(s Scenario) CallOption {
	return func(l *call) { l.scenario = s }
}

// seconds rounds up, so that a short wait does not become no wait.
func seconds(d time.Duration) int { return int((max(d, 0) + time.Second - 1) / time.Second) }

func (l call) with(opts []CallOption) call {
	for _, opt := range opts {
		opt(&l)
	}
	return l
}

// Invoice reads one invoice.
func (c *Client) Invoice(ctx context.Context, id string, opts ...CallOption) (Response[Invoice], error) {
	if !isUUID(id) {
		return Response[Invoice]{}, fmt.Errorf("client: invoice id %q is not a UUID", id)
	}
	return fetch[Invoice](ctx, c, call{
		method: http.MethodGet, path: "/invoices/" + id, want: http.StatusOK,
	}.with(opts))
}

// ListOptions filter a list of invoices. The zero value selects all of them.
type ListOptions struct {
	ExternalID string
	Status     Status
	Cursor     string // NextCursor of the previous page
	Limit      int    // invoices per page, 1 to 100; 0 for the default of the service
}

// ListInvoices reads one page of invoices, newest first. Meta.NextCursor is empty on
// the last page.
func (c *Client) ListInvoices(ctx context.Context, o ListOptions) (Response[[]Invoice], error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"external_id": o.ExternalID, "status": string(o.Status), "cursor": o.Cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if o.Limit != 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	return fetch[[]Invoice](ctx, c, call{
		method: http.MethodGet, path: "/invoices", query: query, want: http.StatusOK,
	})
}

// AllInvoices yields the invoices of every page of a list. It stops after the first
// error, which it yields with an empty invoice.
func (c *Client) AllInvoices(ctx context.Context, o ListOptions) iter.Seq2[Invoice, error] {
	return pages(o.Cursor, func(cursor string) (Response[[]Invoice], error) {
		o := o
		o.Cursor = cursor
		return c.ListInvoices(ctx, o)
	})
}

// pages yields the items of every page of a list. Each loop over the sequence starts at
// the same cursor.
func pages[T any](from string, read func(cursor string) (Response[[]T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := from; ; {
			page, err := read(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Data {
				if !yield(item, nil) {
					return
				}
			}
			if cursor = page.Meta.NextCursor; cursor == "" {
				return
			}
		}
	}
}

// checkIdempotencyKey returns an error when the API would refuse the key.
func checkIdempotencyKey(key string) error {
	if len(key) < 1 || len(key) > 200 {
		return errors.New("client: the idempotency key must have 1 to 200 characters")
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return errors.New("client: the idempotency key must be printable ASCII")
		}
	}
	if key[0] == ' ' || key[len(key)-1] == ' ' {
		return errors.New("client: the idempotency key must not start or end with a space")
	}
	return nil
}
