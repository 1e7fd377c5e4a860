package fiscal

import (
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// An Amount is a decimal together with the text that the integrator sent.
type Amount struct {
	Value Decimal
	Text  string
}

// Declared are the totals that the integrator sent.
type Declared struct {
	Subtotal, DiscountTotal, TaxTotal, Total Amount
}

// A Bucket holds the totals of all lines with one billing indicator.
type Bucket struct {
	Present bool    // at least one line has the indicator, even one of 0.00
	Base    Decimal // the sum of the amounts
	ITBIS   Decimal // the tax on Base, rounded once
}

// An AdditionalTotal is the total of one additional tax of a document.
type AdditionalTotal struct {
	Code   string
	Rate   Decimal // percent
	Base   Decimal // the sum of the amounts of the lines that carry the code
	Amount Decimal
}

// Totals are the amounts of a document (e-CF format, totals). ITBIS is computed
// once per rate on the sum of the lines, as the authority computes it.
type Totals struct {
	Gross, Discount, Net Decimal // sums over the lines

	I1, I2, I3, Exempt Bucket
	Taxable            Decimal // I1 + I2 + I3
	ITBIS              Decimal

	Additional    []AdditionalTotal // in the order of their codes
	AdditionalTax Decimal           // the sum of Additional

	Total Decimal // MontoTotal

	ITBISWithheld, IncomeTaxWithheld Decimal
}

// Bucket returns the bucket of an indicator.
func (t *Totals) Bucket(i Indicator) *Bucket {
	switch i {
	case Taxed18:
		return &t.I1
	case Taxed16:
		return &t.I2
	case ZeroRated:
		return &t.I3
	case Exempt:
	}
	return &t.Exempt
}

// computeTotals adds up the lines, all of which must be computed.
func computeTotals(lines []Line) Totals {
	var t Totals
	for i := range lines {
		line := &lines[i]
		t.Gross = t.Gross.Add(line.Gross)
		t.Discount = t.Discount.Add(line.DiscountAmount)
		t.Net = t.Net.Add(line.Amount)
		b := t.Bucket(line.Indicator)
		b.Present = true
		b.Base = b.Base.Add(line.Amount)
		for _, code := range line.AdditionalTaxes {
			t.additional(code).Base = t.additional(code).Base.Add(line.Amount)
		}
	}
	for _, i := range [...]Indicator{Taxed18, Taxed16, ZeroRated} {
		b := t.Bucket(i)
		b.ITBIS = round2(percentOf(b.Base, i.Rate()))
		t.Taxable = t.Taxable.Add(b.Base)
		t.ITBIS = t.ITBIS.Add(b.ITBIS)
	}
	for i := range t.Additional {
		a := &t.Additional[i]
		a.Amount = round2(percentOf(a.Base, a.Rate))
		t.AdditionalTax = t.AdditionalTax.Add(a.Amount)
	}
	t.Total = t.Net.Add(t.ITBIS).Add(t.AdditionalTax)
	return t
}

// additional returns the entry of a code. It inserts the entry when there is
// none.
func (t *Totals) additional(code string) *AdditionalTotal {
	i, found := slices.BinarySearchFunc(t.Additional, code, func(a AdditionalTotal, code string) int {
		switch {
		case a.Code < code:
			return -1
		case a.Code > code:
			return 1
		}
		return 0
	})
	if !found {
		rate, _ := AdditionalTaxRate(code)
		t.Additional = slices.Insert(t.Additional, i, AdditionalTotal{Code: code, Rate: rate})
	}
	return &t.Additional[i]
}

// totals computes the totals and compares them with the declared ones. It reports
// whether the total of the document is known.
func (c *checker) totals(r *Request, inv *Invoice) bool {
	inv.Totals = computeTotals(inv.Lines)
	if tooLarge(inv.Totals.Gross) || tooLarge(inv.Totals.Total) {
		if r.declared.total.state != invalid {
			c.add("declared_totals.total", CodeOutOfRange, lang.Messagef(
				"the sum of the lines must have at most 16 integer digits",
				"la suma de las líneas debe tener un máximo de 16 dígitos enteros"))
		}
		return false
	}
	if r.declared.ok() {
		c.declared(inv)
	}
	return true
}
