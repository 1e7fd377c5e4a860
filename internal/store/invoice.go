package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Scope is whose rows a call may see: one taxpayer in one environment. Every
// statement on an integrator's data carries both.
type Scope struct {
	Environment fiscal.Environment
	TaxpayerID  string
}

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

func optionalText(s string) any {
	if s == "" {
		return nil
	}
	return s
}
