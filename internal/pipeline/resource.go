package pipeline

import (
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// InvoiceResource is an invoice as integrators see it. It is defined here because
// the answer to a creation is stored with the invoice.
type InvoiceResource struct {
	ID               string        `json:"id"`
	TaxpayerID       string        `json:"taxpayer_id"`
	ExternalID       string        `json:"external_id"`
	ECFType          fiscal.Type   `json:"ecf_type"`
	Status           fiscal.Status `json:"status"`
	FiscalDocumentID string        `json:"fiscal_document_id"`
	Currency         string        `json:"currency"`
	IssueDate        string        `json:"issue_date"`
	Totals           InvoiceTotals `json:"totals"`
	CreatedAt        string        `json:"created_at"`
	UpdatedAt        string        `json:"updated_at"`
}

// InvoiceTotals are the totals of an InvoiceResource, as text.
type InvoiceTotals struct {
	Subtotal      string `json:"subtotal"`
	DiscountTotal string `json:"discount_total"`
	TaxTotal      string `json:"tax_total"`
	Total         string `json:"total"`
	Paid          string `json:"paid"`
	Balance       string `json:"balance"`
}

// NewInvoiceResource returns the resource of a stored invoice.
func NewInvoiceResource(inv store.Invoice) InvoiceResource {
	return InvoiceResource{
		ID: inv.ID, TaxpayerID: inv.TaxpayerID, ExternalID: inv.ExternalID, ECFType: inv.Type, Status: inv.Status,
		FiscalDocumentID: inv.DocumentID, Currency: inv.Currency, IssueDate: inv.IssueDate,
		Totals: InvoiceTotals{
			Subtotal: inv.Subtotal, DiscountTotal: inv.DiscountTotal, TaxTotal: inv.TaxTotal, Total: inv.Total,
			Paid: inv.Paid, Balance: inv.Balance,
		},
		CreatedAt: fiscal.FormatInstant(inv.CreatedAt), UpdatedAt: fiscal.FormatInstant(inv.UpdatedAt),
	}
}

// InvoicePath returns the address of an invoice below the base URL.
func InvoicePath(inv store.Invoice) string {
	return "/v1/taxpayers/" + inv.TaxpayerID + "/invoices/" + inv.ID
}
