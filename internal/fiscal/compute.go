package fiscal

// ComputeTotals returns the totals that follow from the lines of a request, whatever
// totals it declares. It returns false when a line has a problem that New reports.
func ComputeTotals(r Request) (Totals, bool) {
	var c checker
	inv := &Invoice{content: r.head}
	inv.Type = r.kind.value
	if !r.object || !c.lines(&r, inv) {
		return Totals{}, false
	}
	return computeTotals(inv.Lines), true
}

// DeclaredTotals are the texts of declared_totals in a request.
type DeclaredTotals struct {
	Subtotal      string `json:"subtotal"`
	DiscountTotal string `json:"discount_total"`
	TaxTotal      string `json:"tax_total"`
	Total         string `json:"total"`
}

// Declared returns the totals as a request declares them.
func (t *Totals) Declared() DeclaredTotals {
	return DeclaredTotals{money(t.Gross), money(t.Discount), money(t.ITBIS.Add(t.AdditionalTax)), money(t.Total)}
}
