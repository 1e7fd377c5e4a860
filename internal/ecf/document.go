// Package ecf owns what is said to the tax authority: the electronic fiscal
// documents (e-CF) of types 31 and 32 and the summary (RFCE) of small consumer
// invoices, their numbers, security codes and stamps. A Document is made of a
// valid invoice, written as XML, and read back from it. It is pure; how
// documents travel is not its matter.
package ecf

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// An Issuer is in whose name a document is issued, as the document says it.
// Fields that are empty are left out.
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

// A Number is an electronic fiscal number with the day on which the range that
// it was taken from expires; only type 31 states it.
type Number struct {
	ENCF    fiscal.ENCF
	Expires fiscal.Date
}

// A Document is everything that an e-CF of type 31 or 32 says, before it is
// signed. Texts are as the XML carries them: normalised and within their
// limits. Fields that are zero are left out, unless said otherwise.
type Document struct {
	Number

	// Inclusive tells that the prices include ITBIS. Ours never do.
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

// A Buyer is who a document is made out to.
type Buyer struct {
	TaxID         string // RNC or cédula
	ForeignID     string // of a foreigner, on type 32 alone
	LegalName     string
	Contact       string
	Email         string
	Address       string
	Municipality  string // code
	Province      string // code
	PurchaseOrder string
	Information   string
}

// Totals is the amounts of a document.
type Totals struct {
	I1, I2, I3, Exempt fiscal.Bucket
	Taxable            fiscal.Decimal // of I1, I2 and I3
	ITBIS              fiscal.Decimal

	Additional    []AdditionalTax // in the order of their codes
	AdditionalTax fiscal.Decimal  // the sum of Additional

	Total fiscal.Decimal // MontoTotal

	// Withheld tells that the buyer keeps back something; then both amounts
	// are stated, if only as 0.00.
	Withheld                         bool
	ITBISWithheld, IncomeTaxWithheld fiscal.Decimal
}

// taxed tells whether a line is subject to ITBIS, if only at zero.
func (t *Totals) taxed() bool { return t.I1.Present || t.I2.Present || t.I3.Present }

// An AdditionalTax is one tax besides ITBIS on a whole document.
type AdditionalTax struct {
	Code   string // 001 to 005
	Rate   fiscal.Decimal
	Amount fiscal.Decimal
}

// A Line is one item of a document. Its place among the lines is its number.
type Line struct {
	SKU             string
	Indicator       fiscal.Indicator
	Name            string // at most 80 characters
	Description     string // the whole text, when Name is only its beginning
	ItemKind        fiscal.ItemKind
	Quantity        fiscal.Decimal
	Unit            int // code of the authority's table, see UnitName
	Price           fiscal.Decimal
	Discount        fiscal.Decimal
	DiscountPercent fiscal.Decimal // zero when the discount is stated as an amount alone
	AdditionalTaxes []string
	Amount          fiscal.Decimal

	// Withheld tells that the line states withholdings, if only of 0.00.
	Withheld                         bool
	ITBISWithheld, IncomeTaxWithheld fiscal.Decimal
}

// HasSummary tells whether the authority gets only a summary of the document
// (RFCE), as it does of consumer invoices below 250,000.00.
func (d *Document) HasSummary() bool {
	return d.ENCF.Type() == fiscal.Consumer && d.Totals.Total.Cmp(fiscal.SummaryLimit()) < 0
}

// FileName is the name that the authority wants the document's file to have.
func (d *Document) FileName() string { return d.Issuer.RNC + d.ENCF.String() + ".xml" }
