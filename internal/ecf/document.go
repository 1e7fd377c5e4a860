// Package ecf owns the documents for the tax authority: the electronic fiscal
// documents (e-CF) of types 31 and 32 and the summary (RFCE) of small consumer
// invoices, with their numbers, security codes and stamps. It builds a Document
// of a valid invoice, writes it as XML and reads it back. It is pure: other
// packages send and store documents.
package ecf

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An Issuer is the taxpayer that issues a document, as the document states it.
// The document omits empty fields.
type Issuer struct {
	RNC              string // 9 or 11 digits
	LegalName        string
	TradeName        string
	Branch           string
	Address          string
	Municipality     string // code
	Province         string // code
	Phones           []string
	Email            string
	Website          string
	EconomicActivity string
	IncomeType       string // 01 to 06
}

// A Number is an electronic fiscal number with the day on which its number range
// expires; only type 31 states that day.
type Number struct {
	ENCF    fiscal.ENCF
	Expires fiscal.Date
}

// A Document is the content of an e-CF of type 31 or 32, without its signature.
// Texts are as in the XML: normalised and within their limits. The XML omits zero
// fields, unless a comment says otherwise.
type Document struct {
	Number

	// Inclusive is true when the prices include ITBIS. In documents that we issue
	// they never do.
	Inclusive   bool
	PaymentType fiscal.PaymentType
	DueDate     fiscal.Date
	PaymentTerm string

	Issuer         Issuer
	InternalNumber string // the integrator's own number of the invoice
	Notes          string
	IssueDate      fiscal.Date

	Buyer  Buyer
	Totals Totals
	Lines  []Line

	// SignedAt is when the document is signed, to the second.
	SignedAt time.Time
}

// A Buyer is the buyer that a document names.
type Buyer struct {
	TaxID         string // RNC or cédula
	ForeignID     string // of a foreigner, on type 32 only
	LegalName     string
	Contact       string
	Email         string
	Address       string
	Municipality  string // code
	Province      string // code
	PurchaseOrder string
	Information   string
}

// Totals are the amounts of a document.
type Totals struct {
	I1, I2, I3, Exempt fiscal.Bucket
	Taxable            fiscal.Decimal // of I1, I2 and I3
	ITBIS              fiscal.Decimal

	Additional    []AdditionalTax // in the order of their codes
	AdditionalTax fiscal.Decimal  // the sum of Additional

	Total fiscal.Decimal // MontoTotal

	// Withheld is true when the buyer withholds taxes. The document then states
	// both amounts, even when one is 0.00.
	Withheld                         bool
	ITBISWithheld, IncomeTaxWithheld fiscal.Decimal
}

// taxed reports whether a line is subject to ITBIS, including at zero percent.
func (t *Totals) taxed() bool { return t.I1.Present || t.I2.Present || t.I3.Present }

// An AdditionalTax is the total of one tax besides ITBIS.
type AdditionalTax struct {
	Code   string // 001 to 005
	Rate   fiscal.Decimal
	Amount fiscal.Decimal
}

// A Line is one item of a document. Its number is its index plus one.
type Line struct {
	SKU             string
	Indicator       fiscal.Indicator
	Name            string // at most 80 characters
	Description     string // the whole text, when Name is a part of it
	ItemKind        fiscal.ItemKind
	Quantity        fiscal.Decimal
	Unit            int // code of the authority's table, see UnitName
	Price           fiscal.Decimal
	Discount        fiscal.Decimal
	DiscountPercent fiscal.Decimal // zero when the document states the discount only as an amount
	AdditionalTaxes []string
	Amount          fiscal.Decimal

	// Withheld is true when the line states withholdings, even of 0.00.
	Withheld                         bool
	ITBISWithheld, IncomeTaxWithheld fiscal.Decimal
}

// HasSummary reports whether the authority receives only a summary (RFCE) of the
// document.
func (d *Document) HasSummary() bool {
	return fiscal.SentAsSummary(d.ENCF.Type(), d.Totals.Total)
}
