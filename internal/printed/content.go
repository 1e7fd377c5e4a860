package printed

import (
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A pair is a label and its value. The caption is the label in English.
type pair struct {
	label, caption, value string
	strong                bool
}

// pairs cleans the values, removes pairs without a value, and removes the
// captions unless the page is in English.
func (p Page) pairs(list ...pair) []pair {
	kept := list[:0]
	for _, e := range list {
		if e.value = clean(e.value); e.value == "" {
			continue
		}
		if !p.english() {
			e.caption = ""
		}
		kept = append(kept, e)
	}
	return kept
}

// fullAddress joins an address with the names of its municipality and province,
// unless the address names them already.
func fullAddress(address, municipality, province string, more ...string) string {
	parts := []string{address, ecf.RegionName(municipality), ecf.RegionName(province)}
	if parts[1] == parts[2] {
		parts[1] = ""
	}
	for i, place := range parts[1:] {
		if place != "" && ecf.AddressNames(address, place) {
			parts[i+1] = ""
		}
	}
	return joined(", ", append(parts, more...)...)
}

// joined joins the parts that are not empty.
func joined(separator string, parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part = clean(part); part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, separator)
}

// first returns the first text that is not blank.
func first(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}

// title returns the number of the document and, for a fiscal credit invoice, when
// its number range expires.
func (p Page) title() []pair {
	d := p.Document
	list := []pair{{label: "e-NCF:", caption: "Fiscal number", value: d.ENCF.String(), strong: true}}
	// A consumer invoice never states when its number range expires.
	if d.ENCF.Type() == fiscal.FiscalCredit {
		list = append(list, pair{label: "Fecha Vencimiento:", caption: "Number valid until", value: d.Expires.DGIIString()})
	}
	return p.pairs(list...)
}

// names returns the names of the issuer, the most prominent one first.
func (p Page) names() []string {
	var names []string
	for _, name := range []string{p.Document.Issuer.TradeName, p.Document.Issuer.LegalName, p.Document.Issuer.Branch} {
		if name = clean(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// issuer returns who issued the document and where, which the authority requires
// on every page.
func (p Page) issuer() []pair {
	d := p.Document
	return p.pairs(
		pair{label: "RNC", caption: "Tax ID", value: d.Issuer.RNC, strong: true},
		pair{label: "Dirección:", caption: "Address", value: fullAddress(d.Issuer.Address, d.Issuer.Municipality, d.Issuer.Province)},
	)
}

// contact returns how to reach the issuer.
func (p Page) contact() []pair {
	d := p.Document
	return p.pairs(
		pair{label: "Teléfono:", caption: "Phone", value: joined(" / ", d.Issuer.Phones...)},
		pair{label: "Correo:", caption: "E-mail", value: d.Issuer.Email},
		pair{label: "Sitio web:", caption: "Website", value: d.Issuer.Website},
	)
}

// issued returns the date of issue, which the authority requires on every page.
func (p Page) issued() []pair {
	return p.pairs(pair{label: "Fecha Emisión:", caption: "Issue date", value: p.Document.IssueDate.DGIIString(), strong: true})
}

// buyer returns who the buyer is, which the authority requires on every page.
func (p Page) buyer() []pair {
	b := &p.Document.Buyer
	return p.pairs(
		pair{label: "Razón Social Cliente:", caption: "Customer", value: b.LegalName, strong: true},
		pair{label: "RNC Cliente:", caption: "Customer tax ID", value: b.TaxID, strong: true},
		pair{label: "Identificador Extranjero:", caption: "Foreign ID", value: b.ForeignID, strong: true},
	)
}

// buyerDetails returns where the buyer is and how to reach it.
func (p Page) buyerDetails() []pair {
	b := &p.Document.Buyer
	return p.pairs(
		pair{label: "Dirección:", caption: "Address", value: fullAddress(b.Address, b.Municipality, b.Province, p.Extra.BuyerPostalCode, p.Extra.BuyerCountry)},
		pair{label: "Contacto:", caption: "Contact", value: b.Contact},
		pair{label: "Correo:", caption: "E-mail", value: b.Email},
		pair{label: "Información:", caption: "Information", value: b.Information},
	)
}

// stamp returns the texts below the QR code, which the authority requires on
// every page.
func (p Page) stamp() []pair {
	return p.pairs(
		pair{label: "Código de Seguridad:", caption: "Security code", value: p.Code.String(), strong: true},
		pair{label: "Fecha de Firma Digital:", caption: "Digital signature date", value: fiscal.FormatDGIITime(p.Document.SignedAt)},
	)
}

// maxTerm is the longest payment terms that are printed among the other terms.
// Longer ones become a remark.
const maxTerm = 60

func (p Page) paymentTerms() (short, long string) {
	text := first(p.Extra.PaymentTerms, p.Document.PaymentTerm)
	if lines := cleanLines(text); len(lines) == 1 && len(lines[0]) <= maxTerm {
		return lines[0], ""
	}
	return "", text
}

func (p Page) terms() []pair {
	d := p.Document
	payment, english := "", ""
	switch d.PaymentType {
	case fiscal.Cash:
		payment, english = "Contado", "cash"
	case fiscal.Credit:
		payment, english = "Crédito", "credit"
	case fiscal.FreeOfCharge:
		payment, english = "Gratuito", "free of charge"
	}
	if payment != "" && p.english() {
		payment += " (" + english + ")"
	}
	due := p.Extra.DueDate
	if due.IsZero() {
		due = d.DueDate
	}
	dueText := ""
	if !due.IsZero() {
		dueText = due.DGIIString()
	}
	short, _ := p.paymentTerms()
	return p.pairs(
		pair{label: "Forma de pago:", caption: "Payment", value: payment},
		pair{label: "Condiciones:", caption: "Terms", value: short},
		pair{label: "Fecha límite de pago:", caption: "Due date", value: dueText},
		pair{label: "Orden de compra:", caption: "Purchase order", value: first(p.Extra.PurchaseOrder, d.Buyer.PurchaseOrder)},
		pair{label: "Número interno:", caption: "Our number", value: d.InternalNumber},
	)
}

// A remark is a text of any length with a heading.
type remark struct {
	label, caption string
	lines          []string
}

func (p Page) remarks() []remark {
	_, terms := p.paymentTerms()
	var kept []remark
	for _, r := range []remark{
		{"Condiciones de pago", "Payment terms", cleanLines(terms)},
		{"Notas", "Notes", cleanLines(first(p.Extra.Notes, p.Document.Notes))},
	} {
		if len(r.lines) == 0 {
			continue
		}
		if !p.english() {
			r.caption = ""
		}
		kept = append(kept, r)
	}
	return kept
}

// A cell identifies a column of the table.
type cell int

const (
	cellQuantity cell = iota
	cellDescription
	cellUnit
	cellPrice
	cellDiscount
	cellITBIS
	cellValue
	cells
)

// A lineText holds the texts of one line in the table.
type lineText struct {
	text   [cells]string
	exempt bool
}

// columnsOf returns the columns that the table needs: a column whose cells are all
// empty is left out. There is always a description.
func columnsOf(lines []lineText) []column {
	var list []column
	for c := range cells {
		if c == cellDescription || slices.ContainsFunc(lines, func(l lineText) bool { return l.text[c] != "" }) {
			list = append(list, column{cell: c})
		}
	}
	return list
}

// lines returns the texts of the table. The ITBIS of a line is empty when every
// line of the document is exempt.
func (p Page) lines() []lineText {
	d := p.Document
	list := make([]lineText, len(d.Lines))
	taxed := slices.ContainsFunc(d.Lines, func(l ecf.Line) bool { return l.Indicator != fiscal.Exempt })
	for i := range d.Lines {
		l := &d.Lines[i]
		unit := ecf.UnitName(l.Unit)
		if unit == "" && i < len(p.Extra.Units) {
			unit = p.Extra.Units[i]
		}
		discount := ""
		if !l.Discount.IsZero() {
			discount = money(l.Discount)
		}
		itbis := ""
		if taxed {
			itbis = money(lineITBIS(d, l))
		}
		list[i] = lineText{exempt: l.Indicator == fiscal.Exempt, text: [cells]string{
			cellQuantity:    quantity(l.Quantity),
			cellDescription: clean(first(l.Description, l.Name)),
			cellUnit:        clean(unit),
			cellPrice:       price(l.Price),
			cellDiscount:    discount,
			cellITBIS:       itbis,
			cellValue:       money(l.Amount),
		}}
	}
	return list
}

// A heading is the title of a column.
type heading struct {
	lines   []string
	caption string
}

func (p Page) headings() [cells]heading {
	h := [cells]heading{
		cellQuantity:    {[]string{"Cantidad"}, "Quantity"},
		cellDescription: {[]string{"Descripción"}, "Description"},
		cellUnit:        {[]string{"Unidad de Medida"}, "Unit"},
		cellPrice:       {[]string{"Precio"}, "Price"},
		cellDiscount:    {[]string{"Descuento"}, "Discount"},
		cellITBIS:       {[]string{"ITBIS"}, "VAT"},
		cellValue:       {[]string{"Valor"}, "Amount"},
	}
	if !p.english() {
		for i := range h {
			h[i].caption = ""
		}
	}
	return h
}
