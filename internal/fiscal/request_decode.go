package fiscal

import (
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// DecodeRequest reads an invoice creation request. It never fails: the Request
// keeps the problems, and New reports them together with its own.
func DecodeRequest(doc *strictjson.Document) Request { return decodeRequest(doc, false) }

func decodeRequest(doc *strictjson.Document, registered bool) Request {
	var (
		d    = decoder{truncated: doc.Truncated(), registered: registered}
		r    = Request{registered: registered}
		root = doc.Root()
	)
	if r.object = d.is(root, path{index: -1}, strictjson.Object); r.object {
		d.request(root, &r)
	}
	if d.truncated && len(d.list) == 0 {
		d.fail(path{index: -1}, CodeTooManyItems, lang.Messagef(
			"has more members or items than an invoice can have",
			"tiene más campos o elementos de los que una factura puede tener"))
	}
	r.problems = d.report
	return r
}

func (d *decoder) request(n strictjson.Node, r *Request) {
	var (
		p                    = &path{index: -1}
		externalID           opt[string]
		currency, language   opt[string]
		buyer, lines, totals state
	)
	for name, v := range n.Members() {
		switch at := p.at(name); name {
		case "external_id":
			externalID = d.text(v, at, textRule{min: 1, max: 200})
		case "ecf_type":
			r.kind = enum(d, v, at, FiscalCredit, Consumer)
		case "issue_date":
			r.issueDate = d.date(v, at)
		case "due_date":
			if v.Kind() != strictjson.Null {
				r.dueDate = d.date(v, at)
			}
		case "currency":
			currency = enum(d, v, at, "DOP")
		case "language":
			language = enum(d, v, at, "es", "en")
		case "payment_type":
			r.payment = enum(d, v, at, Cash, Credit, FreeOfCharge)
		case "buyer":
			buyer = d.buyer(v, at, r)
		case "lines":
			lines = d.lines(v, at, r)
		case "declared_totals":
			totals = d.declared(v, at, r)
		case "purchase_order":
			r.head.PurchaseOrder = d.text(v, at, textRule{min: 1, max: 120}).value
		case "payment_terms":
			r.head.PaymentTerms = d.text(v, at, textRule{1, 500, true}).value
		case "notes":
			r.head.Notes = d.text(v, at, textRule{1, 2000, true}).value
		case "estimated_withholdings":
			d.withholdings(v, at, r)
		default:
			d.unknown(p, name, requestNames())
		}
	}
	d.need(p, "external_id", externalID.state)
	d.need(p, "ecf_type", r.kind.state)
	d.need(p, "issue_date", r.issueDate.state)
	d.need(p, "currency", currency.state)
	d.need(p, "payment_type", r.payment.state)
	d.need(p, "buyer", buyer)
	d.need(p, "lines", lines)
	d.need(p, "declared_totals", totals)

	r.buyer, r.linesState = buyer, lines
	r.head.ExternalID, r.head.Currency, r.head.Language = externalID.value, currency.value, language.value
	if language.state == absent {
		r.head.Language = "es"
	}
}

func (d *decoder) buyer(n strictjson.Node, p path, r *Request) state {
	if !d.is(n, p, strictjson.Object) {
		return invalid
	}
	var name opt[string]
	b := &r.head.Buyer
	for member, v := range n.Members() {
		switch at := p.at(member); member {
		case "legal_name":
			name = d.text(v, at, textRule{min: 1, max: 200})
		case "tax_id":
			r.taxID = d.format(v, at, isTaxID, lang.Messagef("must be 9 to 11 digits", "debe tener de 9 a 11 dígitos"))
		case "email":
			b.Email = d.email(v, at).value
		case "phone":
			b.Phone = d.text(v, at, textRule{min: 5, max: 40}).value
		case "address":
			d.address(v, at, r)
		default:
			d.unknown(&p, member, buyerNames())
		}
	}
	d.need(&p, "legal_name", name.state)
	b.LegalName, b.TaxID = name.value, r.taxID.value
	return valid
}

func (d *decoder) email(n strictjson.Node, p path) opt[string] {
	if n.Kind() == strictjson.String {
		if length, ok := scanText(n.Text(), false); ok && length > 320 {
			d.fail(p, CodeTooLong, AtMost(320))
			return bad[string]()
		}
	}
	return d.format(n, p, isEmail, lang.Messagef(
		"must be an e-mail address, like name@example.com, without leading, trailing or consecutive dots",
		"debe ser un correo electrónico, como nombre@example.com, sin puntos al inicio, al final ni seguidos"))
}

func (d *decoder) address(n strictjson.Node, p path, r *Request) {
	if !d.is(n, p, strictjson.Object) {
		r.country = bad[string]()
		return
	}
	var (
		a           Address
		line1, city opt[string]
	)
	for name, v := range n.Members() {
		switch at := p.at(name); name {
		case "line1":
			line1 = d.text(v, at, textRule{min: 1, max: 200})
		case "line2":
			a.Line2 = d.text(v, at, textRule{min: 1, max: 200}).value
		case "city":
			city = d.text(v, at, textRule{min: 1, max: 120})
		case "province_or_state":
			a.ProvinceOrState = d.text(v, at, textRule{min: 1, max: 120}).value
		case "postal_code":
			a.PostalCode = d.text(v, at, textRule{min: 1, max: 20}).value
		case "country_code":
			r.country = d.format(v, at, isCountryCode, lang.Messagef("must be two upper-case letters", "deben ser dos letras mayúsculas"))
		default:
			d.unknown(&p, name, addressNames())
		}
	}
	d.need(&p, "line1", line1.state)
	d.need(&p, "city", city.state)
	d.need(&p, "country_code", r.country.state)
	if r.country.state == absent {
		r.country = bad[string]() // already reported; no rule may take the buyer for a foreigner
	}
	a.Line1, a.City, a.CountryCode = line1.value, city.value, r.country.value
	r.head.Buyer.Address = &a
}

func (d *decoder) declared(n strictjson.Node, p path, r *Request) state {
	if !d.is(n, p, strictjson.Object) {
		return invalid
	}
	t := &r.declared
	for name, v := range n.Members() {
		switch at := p.at(name); name {
		case "subtotal":
			t.subtotal = d.total(v, at)
		case "discount_total":
			t.discountTotal = d.total(v, at)
		case "tax_total":
			t.taxTotal = d.total(v, at)
		case "total":
			t.total = d.total(v, at)
		default:
			d.unknown(&p, name, declaredNames())
		}
	}
	d.need(&p, "subtotal", t.subtotal.state)
	d.need(&p, "discount_total", t.discountTotal.state)
	d.need(&p, "tax_total", t.taxTotal.state)
	d.need(&p, "total", t.total.state)
	return valid
}

func (d *decoder) total(n strictjson.Node, p path) opt[Amount] {
	a := d.amount(n, p)
	if a.ok() && tooLarge(a.value.Value) {
		d.fail(p, CodeOutOfRange, sixteenDigits())
		return bad[Amount]()
	}
	return a
}

func (d *decoder) withholdings(n strictjson.Node, p path, r *Request) {
	if !d.is(n, p, strictjson.Object) {
		return
	}
	var w withholdingsRequest
	for name, v := range n.Members() {
		at := p.at(name)
		switch name {
		case "income_tax_amount":
			w.incomeTax.amount = d.decimal(v, at, maxDecimalDigits)
		case "income_tax_base_amount":
			w.incomeTax.base = d.nullable(v, at)
		case "income_tax_rate_percent":
			w.incomeTax.rate = d.nullable(v, at)
		case "itbis_amount":
			w.itbis.amount = d.decimal(v, at, maxDecimalDigits)
		case "itbis_base_amount":
			w.itbis.base = d.nullable(v, at)
		case "itbis_rate_percent":
			w.itbis.rate = d.nullable(v, at)
		default:
			d.unknown(&p, name, withholdingNames())
		}
	}
	d.need(&p, "income_tax_amount", w.incomeTax.amount.state)
	d.need(&p, "itbis_amount", w.itbis.amount.state)
	r.withholdings = &w
}

func (d *decoder) nullable(n strictjson.Node, p path) opt[Decimal] {
	if n.Kind() == strictjson.Null {
		return opt[Decimal]{}
	}
	return d.decimal(n, p, maxDecimalDigits)
}
