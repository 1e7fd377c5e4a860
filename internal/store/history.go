package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// HistoryEntry is one step in the history of an invoice. Entries never change or
// disappear.
type HistoryEntry struct {
	Scope
	InvoiceID string
	ID        string
	At        time.Time
	Kind      string
	Status    fiscal.Status // the status after the step
	RequestID string        // the HTTP request that caused it; empty: the service itself
	Detail    string
}

func addHistoryEntry(e HistoryEntry) statement {
	return statement{`
		INSERT INTO history (invoice_id, id, environment, taxpayer_id, at, kind, status, request_id, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, []any{
		e.InvoiceID, e.ID, string(e.Environment), e.TaxpayerID, micros(e.At), e.Kind, string(e.Status), e.RequestID, e.Detail,
	}}
}

// History lists the history of an invoice, the oldest entry first.
func (r reader) History(ctx context.Context, scope Scope, invoiceID string) ([]HistoryEntry, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT invoice_id, id, at, kind, status, request_id, detail FROM history
		WHERE invoice_id = $3 AND environment = $1 AND taxpayer_id = $2
		ORDER BY at, id`, scope.Environment, scope.TaxpayerID, invoiceID)
	if err != nil {
		return nil, r.d.wrap("read history", err)
	}
	return collect(r.d, "read history", rows, func(row row) (HistoryEntry, error) {
		e := HistoryEntry{Scope: scope}
		var at int64
		err := row.Scan(&e.InvoiceID, &e.ID, &at, &e.Kind, &e.Status, &e.RequestID, &e.Detail)
		e.At = fromMicros(at)
		return e, err
	})
}

// InvoiceOfRequest returns the id of the invoice that an HTTP request was about. When
// a client used a request id twice, it returns the invoice of the later request.
func (r reader) InvoiceOfRequest(ctx context.Context, scope Scope, requestID string) (string, error) {
	var id string
	err := r.q.QueryRowContext(ctx, `
		SELECT invoice_id FROM history
		WHERE request_id = $3 AND request_id <> '' AND environment = $1 AND taxpayer_id = $2
		ORDER BY at DESC LIMIT 1`, scope.Environment, scope.TaxpayerID, requestID).Scan(&id)
	return id, r.d.wrap("find request", err)
}

// AddHistoryEntry adds an entry to the history of an invoice.
func (b *Batch) AddHistoryEntry(e HistoryEntry) *Batch { return b.add(addHistoryEntry(e), nil) }
