package fiscal

// A Draft is what is known of a request that a person is still writing. The totals that
// it declares do not count: they follow from the lines.
type Draft struct {
	// Lines has an element for each line of the request. Only lines with Computed have
	// amounts.
	Lines    []Line
	Computed []bool
	Totals   Totals // of the computed lines
	// Invoice is nil unless the request is valid. It declares the computed totals.
	Invoice *Invoice
	// Problems are those of New, but none of the declared totals. It is empty when
	// Invoice is not nil.
	Problems Problems
}

// NewDraft returns the draft of a request, whose declared totals must be decimals.
func NewDraft(r Request) Draft {
	d := Draft{Lines: make([]Line, len(r.lines)), Computed: make([]bool, len(r.lines))}
	var c checker // New reports the problems
	computed := make([]Line, 0, len(r.lines))
	for i := range r.lines {
		req, line := &r.lines[i], &d.Lines[i]
		line.ID, line.Description, line.SKU, line.Unit = req.id, req.description, req.sku, req.unit
		line.ItemKind, line.UnitCode, line.Taxes = req.kind, req.unitCode, req.taxes
		taxed, priced := c.taxes(i, req, line), c.amounts(i, req, line)
		if taxed && priced {
			line.ITBIS = round2(percentOf(line.Amount, line.Indicator.Rate()))
			d.Computed[i] = true
			computed = append(computed, *line)
		}
	}
	if totals := computeTotals(computed); !tooLarge(totals.Gross) && !tooLarge(totals.Total) {
		d.Totals = totals
	}
	r.declared = d.Totals.declare()
	inv, err := New(r)
	if err != nil {
		d.Problems, _ = err.(Problems) //nolint:errorlint // New documents the type
		return d
	}
	d.Invoice = inv
	return d
}

// declare returns declared totals that agree with the computed ones.
func (t *Totals) declare() declaredRequest {
	amount := func(v Decimal) opt[Amount] { return good(Amount{v, v.StringFixed(2)}) }
	return declaredRequest{amount(t.Gross), amount(t.Discount), amount(t.ITBIS.Add(t.AdditionalTax)), amount(t.Total)}
}
