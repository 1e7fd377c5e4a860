package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// InvoiceFilter says which invoices a page shows. Empty fields do not filter.
type InvoiceFilter struct {
	ExternalID string
	Status     fiscal.Status
	Before     string // only invoices older than the one with this id
	Limit      int
}

// ListInvoices reads one page, the newest first, of what an invoice shows of
// itself; what belongs to its document is left out. Ids sort by age, so the last
// one of a page is where the next page starts, whatever is inserted meanwhile.
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
