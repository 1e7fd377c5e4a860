package client

import "encoding/json"

// InvoiceRequest is the body of a creation. Decimals are strings of digits with an
// optional fraction, like "118.00"; dates are YYYY-MM-DD. Empty optional fields are
// not sent.
type InvoiceRequest struct {
	ExternalID            string        `json:"external_id"`
	ECFType               string        `json:"ecf_type"` // "31" or "32"
	IssueDate             string        `json:"issue_date"`
	DueDate               string        `json:"due_date,omitempty"`
	Currency              string        `json:"currency"`           // "DOP"
	Language              string        `json:"language,omitempty"` // "es" or "en"
	PaymentType           PaymentType   `json:"payment_type"`
	Buyer                 Buyer         `json:"buyer"`
	Lines                 []Line        `json:"lines"`
	DeclaredTotals        Totals        `json:"declared_totals"`
	PurchaseOrder         string        `json:"purchase_order,omitempty"`
	PaymentTerms          string        `json:"payment_terms,omitempty"`
	Notes                 string        `json:"notes,omitempty"`
	EstimatedWithholdings *Withholdings `json:"estimated_withholdings,omitempty"`
}

// PaymentType is the kind of payment of an invoice.
type PaymentType string

// The payment types.
const (
	Cash         PaymentType = "cash"
	Credit       PaymentType = "credit"
	FreeOfCharge PaymentType = "free_of_charge"
)

// Buyer is the buyer of an invoice.
type Buyer struct {
	LegalName string   `json:"legal_name"`
	TaxID     string   `json:"tax_id,omitempty"`
	Email     string   `json:"email,omitempty"`
	Phone     string   `json:"phone,omitempty"`
	Address   *Address `json:"address,omitempty"`
}

// Address is the address of a buyer.
type Address struct {
	Line1           string `json:"line1"`
	Line2           string `json:"line2,omitempty"`
	City            string `json:"city"`
	ProvinceOrState string `json:"province_or_state,omitempty"`
	PostalCode      string `json:"postal_code,omitempty"`
	CountryCode     string `json:"country_code"`
}

// ItemKind says whether an item is a product or a service.
type ItemKind string

// The kinds of items.
const (
	Product ItemKind = "product"
	Service ItemKind = "service"
)

// Line is one line of an invoice.
type Line struct {
	LineID           string    `json:"line_id"`
	Description      string    `json:"description"`
	SKU              string    `json:"sku,omitempty"`
	Unit             string    `json:"unit,omitempty"`
	ItemKind         ItemKind  `json:"item_kind"`
	BillingIndicator int       `json:"billing_indicator,omitempty"`
	UnitCode         int       `json:"unit_code,omitempty"`
	Quantity         string    `json:"quantity"`
	UnitPrice        string    `json:"unit_price"`
	Discount         *Discount `json:"discount"` // nil for none
	Taxes            []Tax     `json:"taxes"`    // empty for none
}

// MarshalJSON encodes a line. A line without taxes gets an empty list, because the
// API requires one.
func (l Line) MarshalJSON() ([]byte, error) {
	type plain Line
	if l.Taxes == nil {
		l.Taxes = []Tax{}
	}
	return json.Marshal(plain(l))
}

// Discount lowers the amount of a line.
type Discount struct {
	Kind  string `json:"kind"` // "percentage"
	Value string `json:"value"`
}

// Tax is a tax on a line.
type Tax struct {
	Code        string `json:"code"`
	Label       string `json:"label"`
	RatePercent string `json:"rate_percent"`
}

// Totals are the amounts that the sender computed; the service checks them.
type Totals struct {
	Subtotal      string `json:"subtotal"`
	DiscountTotal string `json:"discount_total"`
	TaxTotal      string `json:"tax_total"`
	Total         string `json:"total"`
}

// Withholdings are the amounts that the buyer is expected to withhold.
type Withholdings struct {
	IncomeTaxAmount      string `json:"income_tax_amount"`
	IncomeTaxBaseAmount  string `json:"income_tax_base_amount,omitempty"`
	IncomeTaxRatePercent string `json:"income_tax_rate_percent,omitempty"`
	ITBISAmount          string `json:"itbis_amount"`
	ITBISBaseAmount      string `json:"itbis_base_amount,omitempty"`
	ITBISRatePercent     string `json:"itbis_rate_percent,omitempty"`
}
