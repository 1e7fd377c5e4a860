package ecf

import (
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Draft is a document before it is signed. It keeps the lines of the invoice
// and converts each one while it writes it, because there may be a thousand and
// none is needed twice. Document.Lines is empty.
type Draft struct {
	Document
	lines []fiscal.Line
}

// New returns the draft of an invoice's document, with its issuer, its number and
// its time of signature. It keeps within the limits of the format: it omits
// identifiers that are too long, cuts texts, and derives codes from words where
// the meaning is certain. It fails when the issuer is invalid or the number does
// not match the type of the invoice.
func New(issuer Issuer, number Number, inv *fiscal.Invoice, signedAt time.Time) (*Draft, error) {
	if err := issuer.Check(); err != nil {
		return nil, fmt.Errorf("ecf: issuer: %w", err)
	}
	switch {
	case number.ENCF.Type() != inv.Type:
		return nil, fmt.Errorf("ecf: the number %s is not a number of type %s", number.ENCF, inv.Type)
	case inv.Type == fiscal.FiscalCredit && number.Expires.IsZero():
		return nil, errors.New("ecf: a document of type 31 needs the date on which its number range expires")
	case inv.Type == fiscal.Consumer && !number.Expires.IsZero():
		return nil, errors.New("ecf: a document of type 32 must not have a date on which its number range expires")
	}
	d := &Draft{lines: inv.Lines, Document: Document{
		Number:         number,
		PaymentType:    inv.PaymentType,
		PaymentTerm:    paymentTerm(inv.PaymentTerms),
		Issuer:         issuer.clean(),
		InternalNumber: whole(clean(inv.ExternalID), maxInternal),
		Notes:          cutMarked(clean(inv.Notes), maxNotes),
		IssueDate:      inv.IssueDate,
		Buyer:          newBuyer(inv),
		Totals:         newTotals(&inv.Totals),
		SignedAt:       signedAt.UTC().Truncate(time.Second),
	}}
	if inv.PaymentType == fiscal.Credit {
		d.DueDate = inv.DueDate
	}
	return d, nil
}

func newBuyer(inv *fiscal.Invoice) Buyer {
	from := &inv.Buyer
	b := Buyer{
		LegalName: cut(clean(from.LegalName), 150),
		Contact:   cut(clean(from.Phone), 80),
		Email:     email(from.Email),
	}
	if from.Foreign {
		b.ForeignID = from.TaxID
	} else {
		b.TaxID = from.TaxID
	}
	if a := from.Address; a != nil {
		b.Municipality, b.Province = locate(a)
		b.Address = addressText(a, b.Province)
	}
	if order := clean(inv.PurchaseOrder); fits(order, 20) {
		b.PurchaseOrder = order
	} else {
		b.Information = cut("OC: "+order, 150)
	}
	return b
}

func newTotals(from *fiscal.Totals) Totals {
	t := Totals{
		I1: from.I1, I2: from.I2, I3: from.I3, Exempt: from.Exempt,
		Taxable: from.Taxable, ITBIS: from.ITBIS,
		AdditionalTax: from.AdditionalTax, Total: from.Total,
		ITBISWithheld: from.ITBISWithheld, IncomeTaxWithheld: from.IncomeTaxWithheld,
	}
	t.Withheld = !t.ITBISWithheld.IsZero() || !t.IncomeTaxWithheld.IsZero()
	for _, a := range from.Additional {
		t.Additional = append(t.Additional, AdditionalTax{a.Code, a.Rate, a.Amount})
	}
	return t
}

func newLine(from *fiscal.Line) Line {
	text := clean(from.Description)
	l := Line{
		SKU:             whole(clean(from.SKU), maxSKU),
		Indicator:       from.Indicator,
		ItemKind:        from.ItemKind,
		Quantity:        from.Quantity,
		Unit:            unitCode(from.UnitCode, from.Unit),
		Price:           from.UnitPrice,
		Discount:        from.DiscountAmount,
		AdditionalTaxes: from.AdditionalTaxes,
		Amount:          from.Amount,
		Withheld:        !from.ITBISWithheld.IsZero() || !from.IncomeTaxWithheld.IsZero(),
		ITBISWithheld:   from.ITBISWithheld, IncomeTaxWithheld: from.IncomeTaxWithheld,
	}
	if l.Name = cutAtWord(text, maxName); len(l.Name) < len(text) {
		l.Description = text
	}
	// A percentage with more than two decimals is stated as an amount.
	if !l.Discount.IsZero() && from.DiscountPercent.Prec() <= 2 {
		l.DiscountPercent = from.DiscountPercent
	}
	return l
}

// The longest texts of the format, in characters.
const (
	maxInternal = 20 // of the integrator's own number
	maxName     = 80 // of an item; an item with a longer text has a description as well
	maxSKU      = 35
	maxNotes    = 250
	maxTerm     = 15
	maxAddress  = 100
)
