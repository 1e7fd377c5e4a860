package store

import (
	"cmp"
	"context"
	"strconv"

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
	args := []any{scope.Environment, scope.TaxpayerID}
	argument := func(value any) string {
		args = append(args, value)
		return `$` + strconv.Itoa(len(args))
	}
	before, order := argument(cmp.Or(f.Before, lastID)), `id DESC`
	var where string
	switch {
	case f.ExternalID != "": // a range, for the reason of IDSpan
		id := argument(f.ExternalID)
		where, order = ` AND external_id >= `+id+` AND external_id <= `+id+` AND id < `+before, `external_id`
		if f.Status != "" {
			where += ` AND status = ` + argument(f.Status)
		}
	case f.Status != "": // see IDSpan
		status := argument(f.Status)
		where, order = ` AND (status, id) >= (`+status+`, '') AND (status, id) < (`+status+`, `+before+`)`, `status DESC, id DESC`
	default:
		where = ` AND id < ` + before
	}
	limit := argument(f.Limit)
	return collect(r.rows(ctx, "list invoices", `
		SELECT `+listColumns+` FROM documents
		WHERE environment = $1 AND taxpayer_id = $2`+where+`
		ORDER BY `+order+` LIMIT `+limit, args...), func(inv *Invoice) []any {
		inv.Scope = scope
		return inv.listColumns()
	})
}
