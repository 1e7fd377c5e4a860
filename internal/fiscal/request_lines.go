package fiscal

import (
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// MaxLines is the largest number of lines of an invoice (e-CF format, Item).
const MaxLines = 1000

const maxTaxes = 12

func (d *decoder) lines(n strictjson.Node, p path, r *Request) state {
	if !d.is(n, p, strictjson.Array) {
		return invalid
	}
	ok := true
	switch count := n.Len(); {
	case count == 0:
		d.fail(p, CodeTooFewItems, lang.Messagef("must have at least 1 line", "debe tener por lo menos 1 línea"))
		ok = false
	case count > MaxLines:
		d.fail(p, CodeTooManyItems, lang.Messagef("must have at most 1000 lines", "debe tener un máximo de 1000 líneas"))
		ok = false
	}
	r.lines = make([]lineRequest, 0, min(n.Len(), MaxLines))
	for i, v := range n.Items() {
		if i == MaxLines {
			break
		}
		r.lines = append(r.lines, lineRequest{})
		at := p.item(i)
		if !d.is(v, at, strictjson.Object) {
			ok = false
			continue
		}
		d.line(v, at, &r.lines[i])
	}
	if !ok {
		return invalid
	}
	return valid
}

func (d *decoder) line(n strictjson.Node, p path, line *lineRequest) {
	var (
		id, description opt[string]
		kind            opt[ItemKind]
	)
	for name, v := range n.Members() {
		switch at := p.at(name); name {
		case "line_id":
			id = d.text(v, at, textRule{min: 1, max: 100})
		case "description":
			description = d.text(v, at, textRule{1, 500, true})
		case "sku":
			line.sku = d.text(v, at, textRule{min: 1, max: 100}).value
		case "unit":
			line.unit = d.text(v, at, textRule{min: 1, max: 80}).value
		case "item_kind":
			kind = enum(d, v, at, Product, Service)
		case "billing_indicator":
			line.indicator = d.integer(v, at, isIndicator, lang.Messagef("must be 1, 2, 3 or 4", "debe ser 1, 2, 3 o 4"))
		case "unit_code":
			line.unitCode = d.integer(v, at, isUnitCode, lang.Messagef(
				"must be an integer from 1 to 58 or from 60 to 68",
				"debe ser un número entero de 1 a 58 o de 60 a 68")).value
		case "quantity":
			line.quantity = d.quantity(v, at)
		case "unit_price":
			line.price = d.decimal(v, at, 4)
		case "discount":
			line.discount = d.discount(v, at)
		case "taxes":
			line.taxesState = d.taxes(v, at, line)
		default:
			d.unknown(&p, name, lineNames())
		}
	}
	d.need(&p, "line_id", id.state)
	d.need(&p, "description", description.state)
	d.need(&p, "item_kind", kind.state)
	d.need(&p, "quantity", line.quantity.state)
	d.need(&p, "unit_price", line.price.state)
	d.need(&p, "discount", line.discount.state)
	d.need(&p, "taxes", line.taxesState)
	line.id, line.description, line.kind = id.value, description.value, kind.value
}

func isIndicator(v int) bool { return v >= 1 && v <= 4 }

// isUnitCode reports whether the API has a unit code. The API has no 59, and it
// has 63 to 68, which are not in the authority's table.
func isUnitCode(v int) bool { return v >= 1 && v <= 68 && v != 59 }

func (d *decoder) quantity(n strictjson.Node, p path) opt[Decimal] {
	q := d.decimal(n, p, 2)
	if q.ok() && q.value.IsZero() {
		d.fail(p, CodeOutOfRange, lang.Messagef("must be more than 0", "debe ser mayor que 0"))
		return bad[Decimal]()
	}
	return q
}

// discount reads the discount of a line in percent; null means no discount.
func (d *decoder) discount(n strictjson.Node, p path) opt[Decimal] {
	if n.Kind() == strictjson.Null {
		return good(Decimal{})
	}
	if n.Kind() != strictjson.Object {
		d.fail(p, CodeInvalidType, lang.Messagef(
			"must be an object or null, not %s", "debe ser un objeto o null, no %s", n.Kind().Name()))
		return bad[Decimal]()
	}
	var (
		kind  opt[string]
		value opt[Decimal]
	)
	for name, v := range n.Members() {
		switch at := p.at(name); name {
		case "kind":
			kind = enum(d, v, at, "percentage")
		case "value":
			value = d.decimal(v, at, maxDecimalDigits)
			if value.ok() && value.value.Cmp(number(100, 0)) > 0 {
				d.fail(at, CodeOutOfRange, lang.Messagef("must be at most 100", "debe ser 100 o menos"))
				value.state = invalid
			}
		default:
			d.unknown(&p, name, discountNames())
		}
	}
	d.need(&p, "kind", kind.state)
	d.need(&p, "value", value.state)
	if !kind.ok() || !value.ok() {
		return bad[Decimal]()
	}
	return value
}

func (d *decoder) taxes(n strictjson.Node, p path, line *lineRequest) state {
	if !d.is(n, p, strictjson.Array) {
		return invalid
	}
	result := valid
	if n.Len() > maxTaxes {
		d.fail(p, CodeTooManyItems, lang.Messagef("must have at most 12 taxes", "debe tener un máximo de 12 impuestos"))
		result = invalid
	}
	if n.Len() > 0 {
		line.taxes = make([]Tax, 0, min(n.Len(), maxTaxes))
	}
	for i, v := range n.Items() {
		if i == maxTaxes {
			break
		}
		tax := d.tax(v, p.item(i))
		line.taxes = append(line.taxes, tax.value)
		if !tax.ok() {
			result = invalid
			continue
		}
		line.goodTaxes |= 1 << i
	}
	return result
}

func (d *decoder) tax(n strictjson.Node, p path) opt[Tax] {
	if !d.is(n, p, strictjson.Object) {
		return bad[Tax]()
	}
	var (
		code, label opt[string]
		rate        opt[Decimal]
	)
	for name, v := range n.Members() {
		switch at := p.at(name); name {
		case "code":
			code = d.text(v, at, textRule{min: 1, max: 40})
		case "label":
			label = d.text(v, at, textRule{min: 1, max: 120})
		case "rate_percent":
			rate = d.decimal(v, at, maxDecimalDigits)
		default:
			d.unknown(&p, name, taxNames())
		}
	}
	d.need(&p, "code", code.state)
	d.need(&p, "label", label.state)
	d.need(&p, "rate_percent", rate.state)
	if !code.ok() || !label.ok() || !rate.ok() {
		return bad[Tax]()
	}
	return good(Tax{code.value, label.value, rate.value})
}
