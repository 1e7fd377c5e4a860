// Package fiscal owns the domain: the invoice of the API, the rules that make it
// valid, the computation of its amounts by the e-CF format, and the statuses of a
// document with their transitions. It is pure: no clock, no network, no storage,
// no XML.
package fiscal

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Type is a type of electronic fiscal document.
type Type string

// The document types of this version of the API.
const (
	FiscalCredit Type = "31"
	Consumer     Type = "32"
)

// A PaymentType says how an invoice is paid.
type PaymentType string

// The payment types.
const (
	Cash         PaymentType = "cash"
	Credit       PaymentType = "credit"
	FreeOfCharge PaymentType = "free_of_charge"
)

// An Invoice is a valid invoice with its computed amounts. Only New creates one.
// Callers must not change it or anything that it holds.
type Invoice struct {
	content
}

// content is embedded, so that other packages can read its fields but cannot
// build an Invoice without New.
type content struct {
	ExternalID   string
	Type         Type
	IssueDate    Date
	DueDate      Date // zero when absent
	Currency     string
	Language     string // "es" when the request has none
	PaymentType  PaymentType
	Buyer        Buyer
	Lines        []Line
	Declared     Declared
	Withholdings *Withholdings // nil when absent

	PurchaseOrder, PaymentTerms, Notes string // empty when absent

	// Totals are the computed amounts, which the fiscal document carries. They
	// may differ from Declared by cents.
	Totals Totals
	// Warnings tell the integrator about values that were accepted but may be
	// mistakes.
	Warnings []lang.Message
}

// SummaryLimit returns the total from which a consumer invoice is sent in full
// and must name its buyer (e-CF format, type 32): 250,000.00. Below it the
// authority receives a summary.
func SummaryLimit() Decimal { return number(250_000, 0) }

// SentAsSummary reports whether the authority receives only a summary (RFCE) of a
// document of this type and total: of a consumer invoice below SummaryLimit.
func SentAsSummary(t Type, total Decimal) bool {
	return t == Consumer && total.Cmp(SummaryLimit()) < 0
}

// New returns the invoice of a request. Its error is of type Problems and lists
// every problem of the request, in the order of the paths.
func New(r Request) (*Invoice, error) {
	c := checker{report{slices.Clone(r.problems.list), r.problems.dropped}, r.registered}
	if !r.object {
		if len(c.list) == 0 {
			c.add("", CodeInvalidType, lang.Messagef("must be an object", "debe ser un objeto"))
		}
		return nil, c.err()
	}
	inv := &Invoice{content: r.head}
	inv.Type, inv.IssueDate, inv.DueDate, inv.PaymentType = r.kind.value, r.issueDate.value, r.dueDate.value, r.payment.value
	if a := r.head.Buyer.Address; a != nil {
		address := *a
		inv.Buyer.Address = &address
	}
	inv.Declared = Declared{r.declared.subtotal.value, r.declared.discountTotal.value, r.declared.taxTotal.value, r.declared.total.value}

	c.dates(&r)
	c.taxID(&r, inv)
	computed := c.lines(&r, inv)
	if computed {
		computed = c.totals(&r, inv)
	}
	c.buyer(&r, inv, computed)
	c.withholdings(&r, inv, computed)
	c.payment(&r, inv)
	if err := c.err(); err != nil {
		return nil, err
	}
	return inv, nil
}

// A checker applies the rules that compare values of a request with one another.
// A rule runs only when all the values that it compares are valid, so that one
// mistake is reported once.
type checker struct {
	report
	registered bool // the rules of earlier releases apply
}

func (c *checker) dates(r *Request) {
	switch {
	case r.payment.ok() && r.payment.value == Credit && r.dueDate.state == absent:
		c.add("due_date", CodeRequired, lang.Messagef(
			"is required when payment_type is credit", "es obligatorio cuando payment_type es credit"))
	case r.dueDate.ok() && r.issueDate.ok() && r.dueDate.value.Before(r.issueDate.value):
		c.add("due_date", CodeDateOrder, lang.Messagef(
			"must not be before issue_date", "no debe ser anterior a issue_date"))
	}
}

func (c *checker) payment(r *Request, inv *Invoice) {
	if r.payment.value == FreeOfCharge && r.kind.value == FiscalCredit {
		inv.warn(lang.Messagef(
			"payment_type: an invoice of type 31 that is free of charge gives the buyer no fiscal credit",
			"payment_type: una factura tipo 31 gratuita no da crédito fiscal al comprador"))
	}
}

func (inv *Invoice) warn(message lang.Message) { inv.Warnings = append(inv.Warnings, message) }

// CheckDate checks the issue date: it must not be after the date of now, nor
// before electronicSince, the day on which the taxpayer became an electronic
// issuer; the zero date means that this day is not known. Its error is of type
// Problems. The sandbox does not call it, so that fixed test data keeps working.
func (inv *Invoice) CheckDate(now time.Time, electronicSince Date) error {
	var r report
	if inv.IssueDate.After(DateOf(now)) {
		r.add("issue_date", CodeDateInFuture, lang.Messagef(
			"must not be after today in Santo Domingo, %s",
			"no debe ser posterior a hoy en Santo Domingo, %s", DateOf(now)))
	}
	if !electronicSince.IsZero() && inv.IssueDate.Before(electronicSince) {
		r.add("issue_date", CodeOutOfRange, lang.Messagef(
			"must not be before %s, when the taxpayer became an electronic issuer",
			"no debe ser anterior al %s, cuando el contribuyente pasó a ser emisor electrónico", electronicSince))
	}
	return r.err()
}

// Paid returns the amount paid, with as many decimals as the declared total has:
// the total of a cash invoice, zero for the others.
func (inv *Invoice) Paid() string {
	if inv.PaymentType == Cash {
		return inv.Declared.Total.Text
	}
	return inv.zeroAmount()
}

// Balance returns the amount due, with as many decimals as the declared total
// has: the total of a credit invoice, zero for the others.
func (inv *Invoice) Balance() string {
	if inv.PaymentType == Credit {
		return inv.Declared.Total.Text
	}
	return inv.zeroAmount()
}

// zeroAmount returns zero with as many decimals as the declared total has.
func (inv *Invoice) zeroAmount() string {
	_, fraction, ok := strings.Cut(inv.Declared.Total.Text, ".")
	if !ok {
		return "0"
	}
	return "0." + strings.Repeat("0", len(fraction))
}

func lineField(i int, name string) string { return "lines." + strconv.Itoa(i) + "." + name }

func taxField(i, j int, name string) string {
	return lineField(i, "taxes."+strconv.Itoa(j)+"."+name)
}
