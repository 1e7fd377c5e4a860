package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Invoice is an invoice together with its fiscal document. They are one row,
// so that their status cannot differ.
type Invoice struct {
	Scope
	ID            string
	DocumentID    string
	ExternalID    string
	Type          fiscal.Type
	Status        fiscal.Status
	Revision      int64 // counts the changes of status; the creation is 1
	Currency      string
	IssueDate     string
	Subtotal      string
	DiscountTotal string
	TaxTotal      string
	Total         string
	Paid          string
	Balance       string
	DocumentTotal string
	ENCF          string // empty: none taken
	TrackID       string // empty: none given
	Messages      []string
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// invoiceColumns leaves out the request, which is large and seldom needed. Those
// of a list are the ones that an invoice shows of itself.
const (
	listColumns    = `id, document_id, external_id, ecf_type, status, currency, issue_date, amounts, created_at, updated_at`
	invoiceColumns = listColumns + `, sequence, document_total, encf, track_id, messages`
)

// createInvoice stores an invoice and its document with the canonical request.
// It changes no row when the external id is taken.
func createInvoice(inv Invoice, request []byte) (statement, error) {
	messages, err := encodeMessages(inv.Messages)
	return statement{`
		INSERT INTO invoices (` + invoiceColumns + `, environment, taxpayer_id, request)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
		ON CONFLICT (environment, taxpayer_id, external_id) DO NOTHING`, []any{
		inv.ID, inv.DocumentID, inv.ExternalID, string(inv.Type), string(inv.Status), inv.Currency, inv.IssueDate,
		strings.Join([]string{inv.Subtotal, inv.DiscountTotal, inv.TaxTotal, inv.Total, inv.Paid, inv.Balance}, " "),
		micros(inv.CreatedAt), micros(inv.UpdatedAt), inv.Revision, inv.DocumentTotal, optionalText(inv.ENCF),
		optionalText(inv.TrackID), messages, string(inv.Environment), inv.TaxpayerID, request,
	}}, err
}

// Invoice reads an invoice of the scope.
func (r reader) Invoice(ctx context.Context, scope Scope, id string) (Invoice, error) {
	return r.oneInvoice(ctx, `id`, scope, id)
}

// InvoiceOfDocument reads an invoice by its fiscal document.
func (r reader) InvoiceOfDocument(ctx context.Context, scope Scope, documentID string) (Invoice, error) {
	return r.oneInvoice(ctx, `document_id`, scope, documentID)
}

// InvoiceByExternalID reads an invoice by the integrator's own identifier.
func (r reader) InvoiceByExternalID(ctx context.Context, scope Scope, externalID string) (Invoice, error) {
	return r.oneInvoice(ctx, `external_id`, scope, externalID)
}

func (r reader) oneInvoice(ctx context.Context, column string, scope Scope, id string) (Invoice, error) {
	inv, err := scanInvoice(scope)(r.q.QueryRowContext(ctx, `
		SELECT `+invoiceColumns+` FROM invoices
		WHERE environment = $1 AND taxpayer_id = $2 AND `+column+` = $3`,
		scope.Environment, scope.TaxpayerID, id))
	return inv, r.d.wrap("read invoice", err)
}

// scanInvoice reads the columns of an invoice that was asked for by its scope.
func scanInvoice(scope Scope) func(row) (Invoice, error) {
	return func(r row) (Invoice, error) {
		var sequence int64
		var total, messages string
		var encf, track sql.NullString
		inv, err := scanListed(scope, r, &sequence, &total, &encf, &track, &messages)
		if err != nil {
			return Invoice{}, err
		}
		inv.Revision, inv.DocumentTotal, inv.ENCF, inv.TrackID = sequence, total, encf.String, track.String
		if messages != noMessages {
			if err := json.Unmarshal([]byte(messages), &inv.Messages); err != nil {
				return Invoice{}, fmt.Errorf("messages of invoice %s: %w", inv.ID, err)
			}
		}
		return inv, nil
	}
}

// scanListed reads the columns of a list, and more behind them.
func scanListed(scope Scope, r row, more ...any) (Invoice, error) {
	inv := Invoice{Scope: scope}
	var amounts string
	var created, updated int64
	err := r.Scan(append([]any{&inv.ID, &inv.DocumentID, &inv.ExternalID, &inv.Type, &inv.Status, &inv.Currency,
		&inv.IssueDate, &amounts, &created, &updated}, more...)...)
	if err != nil {
		return Invoice{}, err
	}
	inv.CreatedAt, inv.UpdatedAt = fromMicros(created), fromMicros(updated)
	for _, to := range []*string{&inv.Subtotal, &inv.DiscountTotal, &inv.TaxTotal, &inv.Total, &inv.Paid, &inv.Balance} {
		*to, amounts, _ = strings.Cut(amounts, " ")
	}
	return inv, nil
}

const noMessages = `[]`

func encodeMessages(messages []string) (string, error) {
	if len(messages) == 0 {
		return noMessages, nil
	}
	text, err := json.Marshal(messages)
	if err != nil {
		return "", fmt.Errorf("store: encode messages: %w", err)
	}
	return string(text), nil
}

// ErrInvoiceChanged says that an invoice is no longer as it was when it was read.
var ErrInvoiceChanged = errors.New("the invoice has changed meanwhile")

// ChangeStatus gives an invoice and its document their next status. It ends in
// ErrMoved when the invoice is no longer as the move found it.
func (b *Batch) ChangeStatus(before, after Invoice) *Batch {
	if !before.Status.MayBecome(after.Status) {
		b.err = errors.Join(b.err, errors.New("store: an invoice that is "+string(before.Status)+" cannot become "+string(after.Status)))
		return b
	}
	return b.changeInvoice(before, after, before.Revision+1)
}

// UpdateInvoice gives an invoice other messages, and leaves its status.
func (b *Batch) UpdateInvoice(before, after Invoice) *Batch {
	after.Status, after.TrackID = before.Status, before.TrackID
	return b.changeInvoice(before, after, before.Revision)
}

func (b *Batch) changeInvoice(before, after Invoice, sequence int64) *Batch {
	messages, err := encodeMessages(after.Messages)
	b.err = errors.Join(b.err, err)
	return b.add(statement{`
		UPDATE invoices SET status = $6, sequence = $7, messages = $8, updated_at = $9, track_id = $10
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND sequence = $4 AND updated_at = $5`, []any{
		string(before.Environment), before.TaxpayerID, before.ID, before.Revision, micros(before.UpdatedAt),
		string(after.Status), sequence, messages, micros(after.UpdatedAt), optionalText(after.TrackID),
	}}, ErrInvoiceChanged)
}

// Request reads the canonical request of an invoice.
func (r reader) Request(ctx context.Context, scope Scope, invoiceID string) ([]byte, error) {
	var request []byte
	err := r.q.QueryRowContext(ctx, `
		SELECT request FROM invoices WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		scope.Environment, scope.TaxpayerID, invoiceID).Scan(&request)
	return request, r.d.wrap("read request", err)
}

// AnyDocument reads a document of whichever scope by its own id or by that of
// its invoice. It is for the operator.
func (r reader) AnyDocument(ctx context.Context, id string) (Invoice, error) {
	var scope Scope
	var documentID string
	err := r.q.QueryRowContext(ctx, `
		SELECT environment, taxpayer_id, document_id FROM invoices
		WHERE environment <> '' AND taxpayer_id <> '' AND document_id = $1
		UNION ALL
		SELECT i.environment, i.taxpayer_id, i.document_id FROM taxpayers t JOIN invoices i ON i.taxpayer_id = t.id
		WHERE i.environment IN ('sandbox', 'certification', 'production') AND i.id = $1
		LIMIT 1`, id).Scan(&scope.Environment, &scope.TaxpayerID, &documentID)
	if err != nil {
		return Invoice{}, r.d.wrap("find document", err)
	}
	return r.InvoiceOfDocument(ctx, scope, documentID)
}
