package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// InvoiceFilter selects the invoices of a page of the list. Empty fields do not filter.
type InvoiceFilter struct {
	ExternalID string
	Status     fiscal.Status
	Before     string // only invoices older than the one with this id
	Limit      int
}

// ListInvoices reads one page of invoices, the newest first. It leaves out the fields
// of the fiscal document. Ids sort by age, so the next page starts after the last id of
// this page, even when invoices were added in between.
func (r reader) ListInvoices(ctx context.Context, scope Scope, f InvoiceFilter) ([]Invoice, error) {
	var where strings.Builder
	args := []any{scope.Environment, scope.TaxpayerID}
	and := func(condition string, value any) {
		args = append(args, value)
		where.WriteString(` AND ` + condition + ` $` + strconv.Itoa(len(args)))
	}
	if f.ExternalID != "" {
		and(`external_id =`, f.ExternalID)
	}
	if f.Status != "" {
		and(`status =`, f.Status)
	}
	if f.Before != "" {
		and(`id <`, f.Before)
	}
	args = append(args, f.Limit)
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+listColumns+` FROM invoices
		WHERE environment = $1 AND taxpayer_id = $2`+where.String()+`
		ORDER BY id DESC LIMIT $`+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, r.d.wrap("list invoices", err)
	}
	return collect(r.d, "list invoices", rows, func(r row) (Invoice, error) { return scanListed(scope, r) })
}
