package api

import (
	"strings"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// listInvoices answers one page of invoices, newest first.
func (a *API) listInvoices(x *exchange) error {
	query, err := readQuery(x.r, "external_id", "status", "cursor", "limit")
	if err != nil {
		return err
	}
	filter, page, err := a.invoiceFilter(x.scope, query)
	if err != nil {
		return err
	}
	filter.Before, filter.Limit = page.before, page.limit+1
	ctx, cancel := x.deadline()
	defer cancel()
	invoices, err := a.o.Store.ListInvoices(ctx, x.scope, filter)
	if err != nil {
		return err
	}
	return respondPage(x, page, invoices, func(inv store.Invoice) (string, pipeline.InvoiceResource) {
		return inv.ID, pipeline.NewInvoiceResource(inv)
	})
}

// invoiceFilter reads the parameters of the list of invoices.
func (a *API) invoiceFilter(scope store.Scope, q query) (store.InvoiceFilter, pageRequest, error) {
	f := store.InvoiceFilter{ExternalID: q["external_id"]}
	var problems queryProblems
	if utf8.RuneCountInString(f.ExternalID) > maxText {
		problems.add("external_id", fiscal.CodeTooLong, tooLongText())
	}
	if text, ok := q["status"]; ok {
		if f.Status, ok = fiscal.ParseStatus(text); !ok {
			problems.add("status", fiscal.CodeInvalidEnum, lang.Messagef("must be one of %s", "debe ser uno de %s", statusNames()))
		}
	}
	page := a.pageRequest(q, invoiceList(scope, f), &problems)
	return f, page, problems.err()
}

// invoiceList identifies a list of invoices in its cursors. The page size is
// not part of it, so it may change from page to page.
func invoiceList(scope store.Scope, f store.InvoiceFilter) cursor.List {
	return cursor.NewList("invoices", string(scope.Environment), scope.TaxpayerID, f.ExternalID, string(f.Status))
}

func statusNames() string {
	all := fiscal.Statuses()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
