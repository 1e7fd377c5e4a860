package fiscal

// declared compares the declared totals with the lines, to the cent: one cent
// of rounding for each line, and for taxes one for each tax of a line. The
// authority would forgive whole pesos, which would hide real errors.
func (c *checker) declared(inv *Invoice) {
	t, n := &inv.Totals, len(inv.Lines)
	taxHeader := t.ITBIS.Add(t.AdditionalTax)
	taxByLine, taxes := perLine(inv)
	subtotal, discount := round2(inv.Declared.Subtotal.Value), round2(inv.Declared.DiscountTotal.Value)
	tax, total := round2(inv.Declared.TaxTotal.Value), round2(inv.Declared.Total.Value)

	before := len(c.list) + c.dropped
	if !near(discount, t.Discount, n) {
		c.add("declared_totals.discount_total", CodeTotalMismatch, "the discounts of the lines add up to "+money(t.Discount))
	}
	if !near(tax, taxHeader, max(1, taxes)) && !near(tax, taxByLine, max(1, taxes)) {
		message := "the taxes come to " + money(taxHeader)
		if !taxByLine.Equal(taxHeader) {
			message += ", or " + money(taxByLine) + " with ITBIS rounded line by line"
		}
		c.add("declared_totals.tax_total", CodeTotalMismatch, message)
	}

	// The subtotal is read as before or after discounts, each with its own sum.
	gross := reading{t.Gross, subtotal.Sub(discount).Add(tax)}
	net := reading{t.Net, subtotal.Add(tax)}
	chosen, sum := gross, "subtotal - discount_total + tax_total = "
	nearer := subtotal.Sub(net.subtotal).Abs().Cmp(subtotal.Sub(gross.subtotal).Abs()) < 0
	if !gross.holds(subtotal, total, n) && (net.holds(subtotal, total, n) || nearer) {
		chosen, sum = net, "subtotal + tax_total = "
	}
	if !near(subtotal, chosen.subtotal, n) {
		c.add("declared_totals.subtotal", CodeTotalMismatch, "the lines add up to "+money(t.Gross)+" before discounts and "+money(t.Net)+" after them")
	}
	// A sum that fails because one of its parts is wrong is no fault of the
	// total, unless the total is wrong by itself.
	alone := len(c.list)+c.dropped == before
	switch {
	case !near(total, t.Total, 2*n+max(1, taxes)+1):
		c.add("declared_totals.total", CodeTotalMismatch, "the document comes to "+money(t.Total))
	case alone && !near(total, chosen.total, 1):
		c.add("declared_totals.total", CodeTotalMismatch, "must be "+sum+money(chosen.total)+"; the document comes to "+money(t.Total))
	}
	if !total.Equal(t.Total) {
		inv.warn("the declared total " + money(total) + " differs by " + money(total.Sub(t.Total).Abs()) + " from the computed total; the document carries " + money(t.Total))
	}
}

// A reading is what subtotal and total must be when subtotal means one thing.
type reading struct{ subtotal, total Decimal }

func (r reading) holds(subtotal, total Decimal, n int) bool {
	return near(subtotal, r.subtotal, n) && near(total, r.total, 1)
}

// perLine returns the taxes as many programs print them, with ITBIS rounded on
// each line, and how many taxes of more than zero percent the lines have.
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
