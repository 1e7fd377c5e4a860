package fiscal

import "github.com/fiscalhub/fiscalhub/internal/lang"

// An ItemKind says whether an item is a product or a service.
type ItemKind string

// The kinds of items.
const (
	Product ItemKind = "product"
	Service ItemKind = "service"
)

// A Line is one line of an invoice, with its amounts computed by the e-CF format.
// SKU and Unit are empty, and UnitCode zero, when absent.
type Line struct {
	ID, Description, SKU, Unit string
	ItemKind                   ItemKind
	UnitCode                   int
	Quantity, UnitPrice        Decimal
	DiscountPercent            Decimal // zero when there is no discount
	Taxes                      []Tax   // as they were sent

	// Gross is quantity × price, to the cent.
	Gross Decimal
	// DiscountAmount is DiscountPercent of quantity × price, to the cent.
	DiscountAmount Decimal
	// Amount is Gross less DiscountAmount, without any tax (MontoItem).
	Amount Decimal
	// Indicator says how the line is taxed.
	Indicator Indicator
	// ITBIS is the tax of this line alone, to the cent. The document rounds once
	// per rate, so its total may differ from the sum of these.
	ITBIS Decimal
	// AdditionalTaxes are the codes of the other taxes on the line, at most two.
	AdditionalTaxes []string
	// ITBISWithheld and IncomeTaxWithheld are the line's parts of the
	// withholdings.
	ITBISWithheld, IncomeTaxWithheld Decimal
}

// lines computes every line. It reports whether all lines were computed.
func (c *checker) lines(r *Request, inv *Invoice) bool {
	computed := r.linesState == valid
	inv.Lines = make([]Line, len(r.lines))
	var noted [69]bool
	for i := range r.lines {
		req, line := &r.lines[i], &inv.Lines[i]
		line.ID, line.Description, line.SKU, line.Unit = req.id, req.description, req.sku, req.unit
		line.ItemKind, line.UnitCode, line.Taxes = req.kind, req.unitCode, req.taxes
		// Both always run, so that all problems are reported at once.
		taxed, priced := c.taxes(i, req, line), c.amounts(i, req, line)
		if !taxed || !priced {
			computed = false
			continue
		}
		line.ITBIS = round2(percentOf(line.Amount, line.Indicator.Rate()))
		if line.UnitCode >= 63 && !noted[line.UnitCode] {
			noted[line.UnitCode] = true
			inv.warn(lang.Messagef(
				"%s: the code %d is not in the tax authority's table of units; the fiscal document omits it",
				"%s: el código %d no está en la tabla de unidades de la DGII; el comprobante lo omite", lineField(i, "unit_code"), line.UnitCode))
		}
	}
	return computed
}

// amounts computes gross, discount and amount of a line (e-CF format, line
// arithmetic). It reports whether all values of the line allow it.
func (c *checker) amounts(i int, req *lineRequest, line *Line) bool {
	if !req.quantity.ok() || !req.price.ok() {
		return false
	}
	gross := req.quantity.value.Mul(req.price.value)
	if tooLarge(round2(gross)) {
		c.add(lineField(i, "unit_price"), CodeOutOfRange, lang.Messagef(
			"quantity × unit_price must have at most 16 integer digits",
			"quantity × unit_price debe tener un máximo de 16 dígitos enteros"))
		return false
	}
	if !req.discount.ok() {
		return false
	}
	line.Quantity, line.UnitPrice, line.DiscountPercent = req.quantity.value, req.price.value, req.discount.value
	line.Gross = round2(gross)
	if !line.DiscountPercent.IsZero() {
		line.DiscountAmount = round2(percentOf(gross, line.DiscountPercent))
	}
	line.Amount = line.Gross.Sub(line.DiscountAmount)
	return true
}
