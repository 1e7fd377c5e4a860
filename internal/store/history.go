package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
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
	Cause     cause.Cause
}

func addHistoryEntry(e HistoryEntry) statement {
	return do(`
		INSERT INTO history (invoice_id, id, environment, taxpayer_id, at, kind, status, request_id, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		e.InvoiceID, e.ID, string(e.Environment), e.TaxpayerID, micros(e.At), e.Kind, string(e.Status), e.RequestID, string(e.Cause))
}

// History lists the history of an invoice, the oldest entry first.
func (r reader) History(ctx context.Context, scope Scope, invoiceID string) ([]HistoryEntry, error) {
	return collect(r.rows(ctx, "read history", `
		SELECT invoice_id, id, at, kind, status, request_id, detail FROM history
		WHERE invoice_id = $3 AND environment = $1 AND taxpayer_id = $2
		ORDER BY at, id`, scope.Environment, scope.TaxpayerID, invoiceID), func(e *HistoryEntry) []any {
		e.Scope = scope
		return []any{&e.InvoiceID, &e.ID, instant(&e.At), &e.Kind, &e.Status, &e.RequestID, &e.Cause}
	})
}

// MaxOfRequest is how many invoices InvoicesOfRequest returns at most.
const MaxOfRequest = 100

// InvoicesOfRequest returns the ids of the invoices that an HTTP request was about, the
// oldest first. There are several when a client used a request id more than once. The id of
// a stored answer, see AnswerID, leads to its invoice too. The error is ErrNotFound when
// there is none.
func (r reader) InvoicesOfRequest(ctx context.Context, scope Scope, requestID string) ([]string, error) {
	ids, err := collect(r.rows(ctx, "find request", `
		SELECT invoice_id FROM history
		WHERE request_id = $3 AND request_id <> '' AND environment = $1 AND taxpayer_id = $2
		UNION
		SELECT id FROM documents WHERE environment = $1 AND taxpayer_id = $2 AND id = $4
		ORDER BY 1 LIMIT `+strconv.Itoa(MaxOfRequest), scope.Environment, scope.TaxpayerID, requestID, invoiceOfAnswer(requestID)), only[string])
	if err == nil && len(ids) == 0 {
		return nil, ErrNotFound
	}
	return ids, err
}

// AnswerID returns the request id of a stored answer that nobody has got yet, because the
// client of the creation waits for the verdict: the id of the invoice, in the form of a
// request id.
func AnswerID(invoiceID string) string {
	return answerPrefix + strings.ReplaceAll(invoiceID, "-", "")
}

const answerPrefix = "req_"

// invoiceOfAnswer returns the invoice id that a request id would be AnswerID of; empty when
// there is none. Other text must not be cut: a half of a letter is no text for PostgreSQL.
func invoiceOfAnswer(requestID string) string {
	digits, ok := strings.CutPrefix(requestID, answerPrefix)
	if !ok || len(digits) != 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return ""
	}
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// AddHistoryEntry adds an entry to the history of an invoice.
func (b *Batch) AddHistoryEntry(e HistoryEntry) *Batch { return b.add(addHistoryEntry(e), nil) }
