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

// Status is where an invoice and its fiscal document stand.
type Status string

// The states there are. In the sandbox Accepted is a synthetic result, never
// an acceptance of the tax authority.
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

// Invoice is an invoice as the service holds it.
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

// CreateInvoice registers an invoice for processing. Choose the idempotency
// key once per invoice and keep it: sent again with the same request, after
// whatever happened, it gives the answer of the first time and never a second
// invoice.
func (c *Client) CreateInvoice(ctx context.Context, idempotencyKey string, r InvoiceRequest, opts ...CallOption) (Response[Invoice], error) {
	body, err := json.Marshal(r)
	if err != nil {
		return Response[Invoice]{}, fmt.Errorf("client: encode invoice: %w", err)
	}
	return c.CreateInvoiceJSON(ctx, idempotencyKey, body, opts...)
}

// CreateInvoiceJSON is CreateInvoice for a body that is already encoded.
func (c *Client) CreateInvoiceJSON(ctx context.Context, idempotencyKey string, body json.RawMessage, opts ...CallOption) (Response[Invoice], error) {
	if err := checkIdempotencyKey(idempotencyKey); err != nil {
		return Response[Invoice]{}, err
	}
	if len(body) == 0 {
		return Response[Invoice]{}, errors.New("client: the body is empty")
	}
	if len(body) > maxRequest {
		return Response[Invoice]{}, fmt.Errorf("%w: request of %d bytes", ErrTooLarge, len(body))
	}
	return fetch[Invoice](ctx, c, call{
		method: http.MethodPost, path: "/invoices",
		body: body, key: idempotencyKey, want: http.StatusAccepted,
	}.with(opts))
}

// CallOption changes one call.
type CallOption func(*call)

// WithWait has the service answer once the tax authority's verdict is known, or
// after d with what is known then. It waits for 20 seconds at most; the HTTP
// client must have more patience than d.
func WithWait(d time.Duration) CallOption {
	return func(l *call) { l.prefer = "wait=" + strconv.Itoa(seconds(d)) }
}

// seconds rounds up: whoever waits a little does not mean not at all.
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

// ListOptions narrow a list of invoices; the zero value narrows nothing.
type ListOptions struct {
	ExternalID string
	Status     Status
	Cursor     string // NextCursor of the page before
	Limit      int    // invoices in a page, 1 to 100; 0 leaves it to the service
}

// ListInvoices reads one page of invoices, newest first. The page is the last
// when its Meta.NextCursor is empty.
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

// AllInvoices goes through every page of a list. It stops after the first
// error, which it yields with an empty invoice.
func (c *Client) AllInvoices(ctx context.Context, o ListOptions) iter.Seq2[Invoice, error] {
	return func(yield func(Invoice, error) bool) {
		o := o // each loop over the sequence starts from the same place
		for {
			page, err := c.ListInvoices(ctx, o)
			if err != nil {
				yield(Invoice{}, err)
				return
			}
			for _, inv := range page.Data {
				if !yield(inv, nil) {
					return
				}
			}
			if page.Meta.NextCursor == "" {
				return
			}
			o.Cursor = page.Meta.NextCursor
		}
	}
}

// checkIdempotencyKey refuses here what could not be sent as a header.
func checkIdempotencyKey(key string) error {
	if len(key) < 1 || len(key) > 200 {
		return errors.New("client: an idempotency key has 1 to 200 characters")
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return errors.New("client: an idempotency key is printable ASCII")
		}
	}
	if key[0] == ' ' || key[len(key)-1] == ' ' {
		return errors.New("client: an idempotency key neither starts nor ends with a blank")
	}
	return nil
}
