// Package fiscal owns the domain: what an invoice of the contract is, what
// makes one valid, what its amounts come to by the rules of the e-CF format,
// and which statuses a document may go through. It is pure: no clock, no
// network, no storage, no XML.
package fiscal

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Type is a type of electronic fiscal document.
type Type string

// The document types of this version of the contract.
const (
	FiscalCredit Type = "31"
	Consumer     Type = "32"
)

// A PaymentType is how an invoice is paid.
type PaymentType string

// The payment types.
const (
	Cash         PaymentType = "cash"
	Credit       PaymentType = "credit"
	FreeOfCharge PaymentType = "free_of_charge"
)

// An Invoice is a valid invoice with its amounts computed. Only New makes one;
// it and all that it holds are not to be changed.
type Invoice struct {
	content
}

// content is embedded so that its fields are read as the invoice's own while no
// other package can put an invoice together by hand.
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

	// Totals is what the document says, whatever cents were declared.
	Totals Totals
	// Warnings are notes for the integrator about what was accepted but is
	// worth a look.
	Warnings []string
}

// SummaryLimit is the total from which a consumer invoice is sent whole and must
// name its buyer (e-CF format, type 32). Below it the authority gets a summary.
func SummaryLimit() Decimal { return number(250_000, 0) }

// New makes an invoice of a request. When anything is wrong it returns Problems
// with all that was found, in the order of the paths.
func New(r Request) (*Invoice, error) {
	c := checker{report: report{slices.Clone(r.problems.list), r.problems.dropped}}
	if !r.object {
		if len(c.list) == 0 {
			c.add("", CodeInvalidType, "must be an object")
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

// A checker looks at how the values of a request agree with one another. Each
// rule runs when all that it looks at is good, so that nothing is reported that
// only follows from something else.
type checker struct{ report }

func (c *checker) dates(r *Request) {
	switch {
	case r.payment.ok() && r.payment.value == Credit && r.dueDate.state == absent:
		c.add("due_date", CodeRequired, "is required when payment_type is credit")
	case r.dueDate.ok() && r.issueDate.ok() && r.dueDate.value.Before(r.issueDate.value):
		c.add("due_date", CodeDateOrder, "must not be before issue_date")
	}
}

func (c *checker) payment(r *Request, inv *Invoice) {
	if r.payment.value == FreeOfCharge && r.kind.value == FiscalCredit {
		inv.warn("an invoice of type 31 that is free of charge gives the buyer no fiscal credit")
	}
}

func (inv *Invoice) warn(message string) { inv.Warnings = append(inv.Warnings, message) }

// CheckDate tells whether the invoice may be issued at an instant by a taxpayer
// who issues electronically since a day, which may be zero when not known. Its
// error is Problems. The sandbox, where fixed test data must keep working, does
// not ask.
func (inv *Invoice) CheckDate(now time.Time, electronicSince Date) error {
	var r report
	if inv.IssueDate.After(DateOf(now)) {
		r.add("issue_date", CodeDateInFuture, "must not be after today in Santo Domingo, "+DateOf(now).String())
	}
	if !electronicSince.IsZero() && inv.IssueDate.Before(electronicSince) {
		r.add("issue_date", CodeOutOfRange, "must not be before "+electronicSince.String()+", when the taxpayer became an electronic issuer")
	}
	return r.err()
}

// Summary tells whether the authority gets only a summary of the invoice, as it
// does of consumer invoices below 250,000.00.
func (inv *Invoice) Summary() bool {
	return inv.Type == Consumer && inv.Totals.Total.Cmp(SummaryLimit()) < 0
}

// Paid returns what has been paid, written with the decimals of the declared
// total: all of a cash invoice, nothing of the others.
func (inv *Invoice) Paid() string {
	if inv.PaymentType == Cash {
		return inv.Declared.Total.Text
	}
	return inv.nothing()
}

// Balance returns what remains to be paid, written with the decimals of the
// declared total: all of a credit invoice, nothing of the others.
func (inv *Invoice) Balance() string {
	if inv.PaymentType == Credit {
		return inv.Declared.Total.Text
	}
	return inv.nothing()
}

func (inv *Invoice) nothing() string {
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
