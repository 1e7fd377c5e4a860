package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Invoice is an invoice together with its fiscal document. They share one row, so that
// they always have the same status.
type Invoice struct {
	Scope
	ID            string
	DocumentID    string
	ExternalID    string
	Type          fiscal.Type
	Status        fiscal.Status
	Revision      int64 // number of the status change, counted from 1, the creation
	Currency      string
	IssueDate     string
	Subtotal      string
	DiscountTotal string
	TaxTotal      string
	Total         string
	Paid          string
	Balance       string
	DocumentTotal string
	ENCF          string // empty: the document has no number yet
	TrackID       string // empty: the tax authority has given none
	Messages      []string
	Trace         string // traceparent of the creation; empty: it has none
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// NextUpdate returns the instant of a change that follows the last one. Integrators see
// milliseconds, and no two changes of an invoice show the same.
func (inv Invoice) NextUpdate(now time.Time) time.Time {
	now = now.UTC().Truncate(time.Millisecond)
	if next := inv.UpdatedAt.Add(time.Millisecond); now.Before(next) {
		return next
	}
	return now
}

// listColumns are the columns of an invoice in a list. invoiceColumns has all columns
// but the request, which is large and seldom needed.
const (
	listColumns    = `id, document_id, external_id, ecf_type, status, currency, issue_date, amounts, created_at, updated_at`
	invoiceColumns = listColumns + `, revision, document_total, encf, track_id, messages, trace`
)

// createInvoice stores an invoice and its document with the canonical request. It adds
// no row when the external id is taken.
func (d *dialect) createInvoice(inv Invoice, request []byte) (statement, error) {
	messages, err := encodeMessages(inv.Messages)
	return do(createInvoicesText(`($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`),
		inv.ID, inv.DocumentID, inv.ExternalID, string(inv.Type), string(inv.Status), inv.Currency, inv.IssueDate,
		strings.Join([]string{inv.Subtotal, inv.DiscountTotal, inv.TaxTotal, inv.Total, inv.Paid, inv.Balance}, " "),
		micros(inv.CreatedAt), micros(inv.UpdatedAt), inv.Revision, inv.DocumentTotal, optionalText(inv.ENCF),
		optionalText(inv.TrackID), messages, optionalText(inv.Trace), string(inv.Environment), inv.TaxpayerID, d.compressed(request)), err
}

// createInvoicesText returns the statement that stores invoices with these values.
func createInvoicesText(values string) string {
	return `
		INSERT INTO documents (` + invoiceColumns + `, environment, taxpayer_id, request) VALUES ` + values + `
		ON CONFLICT (environment, taxpayer_id, external_id) DO NOTHING`
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
	return one(r.rows(ctx, "read invoice", `
		SELECT `+invoiceColumns+` FROM documents
		WHERE environment = $1 AND taxpayer_id = $2 AND `+column+` = $3`, scope.Environment, scope.TaxpayerID, id), invoiceOf(scope))
}

// invoiceOf returns the destinations of invoiceColumns of an invoice of the scope.
func invoiceOf(scope Scope) func(*Invoice) []any {
	return func(inv *Invoice) []any {
		inv.Scope = scope
		return inv.columns()
	}
}

func (inv *Invoice) columns() []any {
	messages := scanned[string](func(text string) error {
		if text == noMessages {
			return nil
		}
		if err := json.Unmarshal([]byte(text), &inv.Messages); err != nil {
			return fmt.Errorf("messages of invoice %s: %w", inv.ID, err)
		}
		return nil
	})
	return append(inv.listColumns(),
		&inv.Revision, &inv.DocumentTotal, orZero(&inv.ENCF), orZero(&inv.TrackID), messages, orZero(&inv.Trace))
}

func (inv *Invoice) listColumns() []any {
	amounts := into(func(text string) {
		for _, to := range []*string{&inv.Subtotal, &inv.DiscountTotal, &inv.TaxTotal, &inv.Total, &inv.Paid, &inv.Balance} {
			*to, text, _ = strings.Cut(text, " ")
		}
	})
	return []any{
		&inv.ID, &inv.DocumentID, &inv.ExternalID, &inv.Type, &inv.Status, &inv.Currency, &inv.IssueDate, amounts,
		instant(&inv.CreatedAt), instant(&inv.UpdatedAt),
	}
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

// ErrInvoiceChanged means that another transaction changed the invoice after it was read.
var ErrInvoiceChanged = errors.New("another transaction changed the invoice")

const (
	// changedAtOnce is how often RetryInvoiceChanged calls its function without a pause.
	changedAtOnce = 5
	// The pauses after that.
	changedPauseFirst = 5 * time.Millisecond
	changedPauseMost  = time.Second
)

// RetryInvoiceChanged calls update again for as long as it returns ErrInvoiceChanged: what
// update has to store must not be lost because of another change. update must read the
// invoice again. When ctx has ended, it gives up after a few calls. It returns the last
// error.
func RetryInvoiceChanged(ctx context.Context, update func() error) (err error) {
	for range changedAtOnce {
		if err = update(); !errors.Is(err, ErrInvoiceChanged) {
			return err
		}
	}
	for pause := changedPauseFirst; errors.Is(err, ErrInvoiceChanged); pause = min(2*pause, changedPauseMost) {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		err = update()
	}
	return err
}

// ChangeStatus replaces the invoice before by after, which has the next status. The
// commit fails when the status may not follow the previous one, and returns
// ErrInvoiceChanged when the stored invoice is no longer before.
func (b *Batch) ChangeStatus(before, after Invoice) *Batch {
	if !before.Status.MayBecome(after.Status) {
		b.err = errors.Join(b.err, errors.New("store: an invoice that is "+string(before.Status)+" cannot become "+string(after.Status)))
		return b
	}
	return b.changeInvoice(before, after, before.Revision+1)
}

// UpdateInvoice replaces the messages of an invoice and keeps its status. The commit
// returns ErrInvoiceChanged when the stored invoice is no longer before.
func (b *Batch) UpdateInvoice(before, after Invoice) *Batch {
	after.Status, after.TrackID = before.Status, before.TrackID
	return b.changeInvoice(before, after, before.Revision)
}

func (b *Batch) changeInvoice(before, after Invoice, revision int64) *Batch {
	messages, err := encodeMessages(after.Messages)
	b.err = errors.Join(b.err, err)
	return b.add(do(`
		UPDATE documents SET status = $6, revision = $7, messages = $8, updated_at = $9, track_id = $10
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND revision = $4 AND updated_at = $5`,
		string(before.Environment), before.TaxpayerID, before.ID, before.Revision, micros(before.UpdatedAt),
		string(after.Status), revision, messages, micros(after.UpdatedAt), optionalText(after.TrackID)), ErrInvoiceChanged)
}

// TraceOf reads the traceparent of the creation of a document. It is empty when the
// creation had none, or when there is no such document.
func (r reader) TraceOf(ctx context.Context, scope Scope, documentID string) (string, error) {
	trace, err := one(r.rows(ctx, "read trace", `
		SELECT trace FROM documents WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID), func(trace *string) []any { return []any{orZero(trace)} })
	return trace, ifFound(err)
}

// Request reads the canonical request of an invoice.
func (r reader) Request(ctx context.Context, scope Scope, invoiceID string) ([]byte, error) {
	return one(r.rows(ctx, "read request", `
		SELECT request FROM documents WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		scope.Environment, scope.TaxpayerID, invoiceID), func(request *[]byte) []any { return []any{(*storedText)(request)} })
}

// AnyDocument reads a document of any scope, by its id or by the id of its invoice.
// Only the operator uses it.
func (r reader) AnyDocument(ctx context.Context, id string) (Invoice, error) {
	found, err := one(r.rows(ctx, "find document", `
		SELECT environment, taxpayer_id, document_id FROM documents
		WHERE document_id = $1
		UNION ALL
		SELECT i.environment, i.taxpayer_id, i.document_id FROM taxpayers t JOIN documents i ON i.taxpayer_id = t.id
		WHERE i.environment IN ('sandbox', 'certification', 'production') AND i.id = $1
		LIMIT 1`, id), func(inv *Invoice) []any { return []any{&inv.Environment, &inv.TaxpayerID, &inv.DocumentID} })
	if err != nil {
		return Invoice{}, err
	}
	return r.InvoiceOfDocument(ctx, found.Scope, found.DocumentID)
}
