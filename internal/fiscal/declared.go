package fiscal

import "github.com/fiscalhub/fiscalhub/internal/lang"

// declared compares the declared totals with the lines. It allows one cent of
// rounding for each line, and for the tax total one cent for each tax of a line.
// The authority tolerates whole pesos, but such a tolerance would hide errors of
// the integrator.
func (c *checker) declared(inv *Invoice) {
	t, n := &inv.Totals, len(inv.Lines)
	taxHeader := t.ITBIS.Add(t.AdditionalTax)
	taxByLine, taxes := perLine(inv)
	subtotal, discount := round2(inv.Declared.Subtotal.Value), round2(inv.Declared.DiscountTotal.Value)
	tax, total := round2(inv.Declared.TaxTotal.Value), round2(inv.Declared.Total.Value)

	before := len(c.list) + c.dropped
	if !near(discount, t.Discount, n) {
		c.add("declared_totals.discount_total", CodeTotalMismatch, lang.Messagef(
			"must be the sum of the discounts of the lines, %s",
			"debe ser la suma de los descuentos de las líneas, %s", money(t.Discount)))
	}
	if !near(tax, taxHeader, max(1, taxes)) && !near(tax, taxByLine, max(1, taxes)) {
		message := lang.Messagef("must be the sum of the taxes, %s", "debe ser la suma de los impuestos, %s", money(taxHeader))
		if !taxByLine.Equal(taxHeader) {
			message = lang.Messagef(
				"must be the sum of the taxes, %s, or %s when ITBIS is rounded on each line",
				"debe ser la suma de los impuestos, %s, o %s si el ITBIS se redondea en cada línea", money(taxHeader), money(taxByLine))
		}
		c.add("declared_totals.tax_total", CodeTotalMismatch, message)
	}

	// Integrators send the subtotal before or after discounts. Either is
	// accepted, and the total must then follow from it.
	gross := reading{t.Gross, subtotal.Sub(discount).Add(tax)}
	net := reading{t.Net, subtotal.Add(tax)}
	chosen, sum := gross, "subtotal - discount_total + tax_total"
	nearer := subtotal.Sub(net.subtotal).Abs().Cmp(subtotal.Sub(gross.subtotal).Abs()) < 0
	if !gross.holds(subtotal, total, n) && (net.holds(subtotal, total, n) || nearer) {
		chosen, sum = net, "subtotal + tax_total"
	}
	if !near(subtotal, chosen.subtotal, n) {
		c.add("declared_totals.subtotal", CodeTotalMismatch, lang.Messagef(
			"must be the sum of the lines: %s before discounts or %s after them",
			"debe ser la suma de las líneas: %s antes de los descuentos o %s después", money(t.Gross), money(t.Net)))
	}
	// When a part of the sum is wrong, that part is reported, and not the total,
	// unless the total differs from the computed one.
	alone := len(c.list)+c.dropped == before
	switch {
	case !near(total, t.Total, 2*n+max(1, taxes)+1):
		c.add("declared_totals.total", CodeTotalMismatch, lang.Messagef(
			"must be the computed total, %s", "debe ser el total calculado, %s", money(t.Total)))
	case alone && !near(total, chosen.total, 1):
		c.add("declared_totals.total", CodeTotalMismatch, lang.Messagef(
			"must be %s = %s; the computed total is %s",
			"debe ser %s = %s; el total calculado es %s", sum, money(chosen.total), money(t.Total)))
	}
	if !total.Equal(t.Total) {
		inv.warn(lang.Messagef(
			"declared_totals.total: the declared total %s differs by %s from the computed total; the fiscal document carries the computed total %s",
			"declared_totals.total: el total declarado %s difiere en %s del total calculado; el comprobante lleva el total calculado %s",
			money(total), money(total.Sub(t.Total).Abs()), money(t.Total)))
	}
}

// A reading is the subtotal and the total that one meaning of "subtotal", before
// or after discounts, requires.
type reading struct{ subtotal, total Decimal }

func (r reading) holds(subtotal, total Decimal, n int) bool {
	return near(subtotal, r.subtotal, n) && near(total, r.total, 1)
}

// perLine returns the sum of the taxes with ITBIS rounded on each line, as many
// programs compute it, and the number of taxes above zero percent on the lines.
func perLine(inv *Invoice) (total Decimal, taxes int) {
	total = inv.Totals.AdditionalTax
	for i := range inv.Lines {
		line := &inv.Lines[i]
		total = total.Add(line.ITBIS)
		taxes += len(line.AdditionalTaxes)
		if !line.Indicator.Rate().IsZero() {
			taxes++
		}
	}
	return total, taxes
}
