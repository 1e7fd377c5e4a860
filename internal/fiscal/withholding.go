package fiscal

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Withholding is the part of one tax that the buyer is expected to withhold.
type Withholding struct {
	Amount           Decimal
	Base, Rate       Decimal // zero when absent
	HasBase, HasRate bool
}

// Withholdings are the amounts that the buyer is expected to withhold.
type Withholdings struct {
	IncomeTax, ITBIS Withholding
}

func (w withholdingRequest) value() Withholding {
	return Withholding{round2(w.amount.value), w.base.value, w.rate.value, w.base.ok(), w.rate.ok()}
}

// withholdings checks the declared withholdings and spreads them over the lines.
// The format of a consumer invoice has no elements for them (e-CF format,
// withholdings).
func (c *checker) withholdings(r *Request, inv *Invoice, computed bool) {
	if r.withholdings == nil || !r.kind.ok() {
		return
	}
	incomeTax, itbis := r.withholdings.incomeTax, r.withholdings.itbis
	inv.Withholdings = &Withholdings{incomeTax.value(), itbis.value()}
	if r.kind.value == Consumer {
		c.notOnConsumer("estimated_withholdings.income_tax_amount", incomeTax)
		c.notOnConsumer("estimated_withholdings.itbis_amount", itbis)
		return
	}
	product := c.product("estimated_withholdings.income_tax_amount", incomeTax)
	if base, weights := incomeTaxWeights(inv); product && computed && incomeTax.amount.ok() {
		if inv.Withholdings.IncomeTax.Amount.Cmp(base) > 0 {
			c.add("estimated_withholdings.income_tax_amount", CodeOutOfRange, lang.Messagef(
				"must not be more than the amount it is withheld from, %s",
				"no debe ser mayor que el monto del que se retiene, %s", money(base)))
		} else {
			inv.Totals.IncomeTaxWithheld = inv.Withholdings.IncomeTax.Amount
			for i, share := range spread(inCents(inv.Totals.IncomeTaxWithheld), weights) {
				inv.Lines[i].IncomeTaxWithheld = number(share, 2)
			}
		}
	}
	product = c.product("estimated_withholdings.itbis_amount", itbis)
	if product && computed && itbis.amount.ok() {
		if inv.Withholdings.ITBIS.Amount.Cmp(inv.Totals.ITBIS) > 0 {
			c.add("estimated_withholdings.itbis_amount", CodeOutOfRange, lang.Messagef(
				"must not be more than the ITBIS of the document, %s",
				"no debe ser mayor que el ITBIS del comprobante, %s", money(inv.Totals.ITBIS)))
			return
		}
		inv.Totals.ITBISWithheld = inv.Withholdings.ITBIS.Amount
		for i, share := range spread(inCents(inv.Totals.ITBISWithheld), itbisWeights(inv)) {
			inv.Lines[i].ITBISWithheld = number(share, 2)
		}
	}
}

func (c *checker) notOnConsumer(field string, w withholdingRequest) {
	if w.amount.ok() && !w.amount.value.IsZero() {
		c.add(field, CodeNotAllowedForType, lang.Messagef("must be 0 for type 32", "debe ser 0 en el tipo 32"))
	}
}

// product checks the amount against its base, and against base × rate when the request
// has both. The base may be the sale or its tax.
func (c *checker) product(field string, w withholdingRequest) bool {
	switch {
	case !w.amount.ok() || !w.base.ok():
		return true
	case round2(w.amount.value).Cmp(round2(w.base.value)) > 0:
		c.add(field, CodeOutOfRange, lang.Messagef("must not be more than its base, %s", "no debe ser mayor que su base, %s", money(w.base.value)))
		return false
	case !w.rate.ok():
		return true
	}
	want := round2(percentOf(w.base.value, w.rate.value))
	if near(round2(w.amount.value), want, 1) {
		return true
	}
	c.add(field, CodeTotalMismatch, lang.Messagef("must be base × rate, %s", "debe ser base × tasa, %s", money(want)))
	return false
}

// incomeTaxWeights returns the weights that spread the income tax by amount over
// the services, from which income tax is withheld, or over all lines when there
// are no services. sum is the amount of these lines.
func incomeTaxWeights(inv *Invoice) (sum Decimal, weights []uint64) {
	services := slices.ContainsFunc(inv.Lines, func(l Line) bool { return l.ItemKind == Service })
	weights = make([]uint64, len(inv.Lines))
	for i := range inv.Lines {
		if line := &inv.Lines[i]; !services || line.ItemKind == Service {
			weights[i] = inCents(line.Amount)
			sum = sum.Add(line.Amount)
		}
	}
	return sum, weights
}

// itbisWeights returns the weights that spread the ITBIS by the ITBIS of each
// line. When every tax rounds to zero, it uses the amounts of the taxed lines.
func itbisWeights(inv *Invoice) []uint64 {
	byTax, byAmount := make([]uint64, len(inv.Lines)), make([]uint64, len(inv.Lines))
	var sum uint64
	for i := range inv.Lines {
		if line := &inv.Lines[i]; !line.Indicator.Rate().IsZero() {
			byTax[i], byAmount[i] = inCents(line.ITBIS), inCents(line.Amount)
			sum += byTax[i]
		}
	}
	if sum == 0 {
		return byAmount
	}
	return byTax
}

// spread divides an amount by weights. It rounds each share down to the cent and
// gives the cents that are left to the largest remainders, one each, and to the
// lower line when they are equal. The shares add up to the amount.
func spread(amount uint64, weights []uint64) []uint64 {
	var sum uint64
	for _, w := range weights {
		sum += w
	}
	shares := make([]uint64, len(weights))
	if sum == 0 || amount == 0 {
		return shares
	}
	order, rest := make([]int, len(weights)), make([]uint64, len(weights))
	left := amount
	for i, w := range weights {
		high, low := bits.Mul64(amount%sum, w) // amount%sum < sum, so the division cannot overflow
		share, remainder := bits.Div64(high, low, sum)
		shares[i] = share + amount/sum*w
		order[i], rest[i] = i, remainder
		left -= shares[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range order {
		if left == 0 {
			break
		}
		shares[i]++
		left--
	}
	return shares
}
