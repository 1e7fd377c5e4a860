package printed

import (
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A weight is the typographic weight of an amount.
type weight int

const (
	plain  weight = iota
	detail        // a part of the plain amount before it
	grand         // the total of the document
	note          // information below the total
)

// An amount is a row of the totals.
type amount struct {
	label, caption, value string // the caption is the label in English
	weight                weight
}

// pesos writes an amount with the sign of the currency, which every document of
// the service has.
func pesos(d fiscal.Decimal) string { return "RD$ " + money(d) }

// captioned removes the captions unless the page is in English.
func (p Page) captioned(rows []amount) []amount {
	if !p.english() {
		for i := range rows {
			rows[i].caption = ""
		}
	}
	return rows
}

// A rateTotal is the base and the tax of one ITBIS rate.
type rateTotal struct {
	rate string
	fiscal.Bucket
}

// rates returns the ITBIS rates of the document. A rate without an amount and
// without a line is left out, even when the XML names it.
func (p Page) rates() []rateTotal {
	t := &p.Document.Totals
	var list []rateTotal
	for i, r := range []rateTotal{{"18%", t.I1}, {"16%", t.I2}, {"0%", t.I3}} {
		used := slices.ContainsFunc(p.Document.Lines, func(l ecf.Line) bool { return l.Indicator == fiscal.Taxed18+fiscal.Indicator(i) })
		if used || !r.Base.IsZero() || !r.ITBIS.IsZero() {
			list = append(list, r)
		}
	}
	return list
}

// totals returns the amounts of the document, as in the signed XML and in the
// order of the authority's model.
func (p Page) totals() []amount {
	t := &p.Document.Totals
	var rows []amount
	add := func(w weight, label, caption string, d fiscal.Decimal) {
		rows = append(rows, amount{label, caption, money(d), w})
	}
	rates := p.rates()
	taxed := !t.Taxable.IsZero() || len(rates) > 0
	if taxed {
		add(plain, "Subtotal Gravado:", "Taxable subtotal", t.Taxable)
		for _, r := range rates {
			add(detail, "Gravado "+r.rate, "Taxable at "+r.rate, r.Base)
		}
	}
	if t.Exempt.Present || !t.Exempt.Base.IsZero() {
		add(plain, "Subtotal Exento:", "Exempt subtotal", t.Exempt.Base)
	}
	rows = append(rows, additional(t.Additional)...)
	if taxed {
		add(plain, "Total ITBIS:", "Total VAT", t.ITBIS)
		for _, r := range rates {
			add(detail, "ITBIS "+r.rate, "VAT "+r.rate, r.ITBIS)
		}
	}
	rows = append(rows, amount{"Total:", "Total amount", pesos(t.Total), grand})
	return p.captioned(append(rows, p.withheld()...))
}

// additional returns the taxes besides ITBIS. The selective taxes are one total
// with its parts, because the authority has one label for them.
func additional(taxes []ecf.AdditionalTax) []amount {
	var rows, parts []amount
	var selective fiscal.Decimal
	for _, a := range taxes {
		row := amount{value: money(a.Amount)}
		switch a.Code {
		case "001":
			row.label, row.caption = "Propina Legal:", "Legal tip"
		case "002":
			row.label, row.caption = "CDT:", "Telecom. development levy"
		case "005":
			row.label, row.caption = "Primera Placa:", "First registration tax"
		default:
			row.weight = detail
			selective = selective.Add(a.Amount)
			switch a.Code {
			case "003":
				row.label, row.caption = "ISC Seguros "+percent(a.Rate), "Excise on insurance"
			case "004":
				row.label, row.caption = "ISC Telecomunicaciones "+percent(a.Rate), "Excise on telecom."
			default:
				row.label, row.caption = "ISC código "+clean(a.Code), "Excise, code "+clean(a.Code)
			}
			parts = append(parts, row)
			continue
		}
		rows = append(rows, row)
	}
	if len(parts) > 0 {
		rows = append(append(rows, amount{label: "Total ISC:", caption: "Total excise tax", value: money(selective)}), parts...)
	}
	return rows
}

// withheld returns the taxes that the buyer withholds, as information: the
// authority does not require them in print.
func (p Page) withheld() []amount {
	t := &p.Document.Totals
	if p.Document.ENCF.Type() != fiscal.FiscalCredit || !t.Withheld {
		return nil
	}
	var itbis, income fiscal.Withholding
	if w := p.Extra.Withholdings; w != nil {
		itbis, income = w.ITBIS, w.IncomeTax
	}
	return []amount{
		{"ITBIS Retenido" + basis(itbis), "ITBIS withheld", money(t.ITBISWithheld), note},
		{"ISR Retenido" + basis(income), "Income tax withheld", money(t.IncomeTaxWithheld), note},
		{"Total a pagar", "Amount payable", pesos(t.Total.Sub(t.ITBISWithheld).Sub(t.IncomeTaxWithheld)), plain},
	}
}

// basis describes the rate and the base of a withholding, as far as known.
func basis(w fiscal.Withholding) string {
	switch {
	case w.HasRate && w.HasBase:
		return " (" + percent(w.Rate) + " de " + money(w.Base) + ")"
	case w.HasRate:
		return " (" + percent(w.Rate) + ")"
	case w.HasBase:
		return " (sobre " + money(w.Base) + ")"
	}
	return ""
}

func percent(d fiscal.Decimal) string { return quantity(d) + "%" }

// pageTotals returns the subtotals of one page of several. All taxes besides
// ITBIS of our documents belong to the authority's group "other taxes", so there
// is no row for selective taxes.
func (p Page) pageTotals(lines []int) []amount {
	s := subtotalOf(p.Document, lines)
	var rows []amount
	add := func(w weight, label, caption string, d fiscal.Decimal) {
		rows = append(rows, amount{label, caption, money(d), w})
	}
	if s.taxed {
		add(plain, "Subtotal Gravado Página:", "Taxable, this page", s.taxable)
	}
	if s.exempt {
		add(plain, "Subtotal Exento Página:", "Exempt, this page", s.free)
	}
	if s.taxed {
		add(plain, "Subtotal ITBIS Página:", "VAT, this page", s.itbis)
	}
	if !s.tax.IsZero() {
		add(plain, "Subtotal Impuesto Adicional Página:", "Additional taxes, this page", s.tax)
		add(detail, "Subtotal Otros Impuestos Adicionales Página:", "Other additional taxes, this page", s.tax)
	}
	rows = append(rows, amount{"Monto Total Página:", "Total of this page", pesos(s.total()), grand})
	return p.captioned(rows)
}
