package printed

import (
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
	label, caption, value string
	weight                weight
}

// totals returns the amounts of the document, as in the signed XML and in the
// order of the authority's model.
func (p Page) totals() []amount {
	t := &p.Document.Totals
	var rows []amount
	add := func(w weight, label string, d fiscal.Decimal) {
		rows = append(rows, amount{label: label, value: money(d), weight: w})
	}
	rates := []struct {
		bucket *fiscal.Bucket
		rate   string
	}{{&t.I1, "18%"}, {&t.I2, "16%"}, {&t.I3, "0%"}}
	taxed := !t.Taxable.IsZero() || t.I1.Present || t.I2.Present || t.I3.Present
	if taxed {
		add(plain, "Subtotal Gravado:", t.Taxable)
		for _, r := range rates {
			if r.bucket.Present {
				add(detail, "Gravado "+r.rate, r.bucket.Base)
			}
		}
	}
	if t.Exempt.Present || !t.Exempt.Base.IsZero() {
		add(plain, "Subtotal Exento:", t.Exempt.Base)
	}
	rows = append(rows, additional(t.Additional)...)
	if taxed {
		add(plain, "Total ITBIS:", t.ITBIS)
		for _, r := range rates {
			if r.bucket.Present {
				add(detail, "ITBIS "+r.rate, r.bucket.ITBIS)
			}
		}
	}
	add(grand, "Total:", t.Total)
	return append(rows, p.withheld()...)
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
			row.label = "Propina Legal:"
		case "002":
			row.label = "CDT:"
		case "005":
			row.label = "Primera Placa:"
		default:
			row.weight = detail
			selective = selective.Add(a.Amount)
			switch a.Code {
			case "003":
				row.label = "ISC Seguros " + percent(a.Rate)
			case "004":
				row.label = "ISC Telecomunicaciones " + percent(a.Rate)
			default:
				row.label = "ISC código " + clean(a.Code)
			}
			parts = append(parts, row)
			continue
		}
		rows = append(rows, row)
	}
	if len(parts) > 0 {
		rows = append(append(rows, amount{label: "Total ISC:", value: money(selective)}), parts...)
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
	rows := []amount{
		{"ITBIS Retenido" + basis(itbis), "ITBIS withheld", money(t.ITBISWithheld), note},
		{"ISR Retenido" + basis(income), "Income tax withheld", money(t.IncomeTaxWithheld), note},
		{"Total a pagar", "Amount payable", money(t.Total.Sub(t.ITBISWithheld).Sub(t.IncomeTaxWithheld)), plain},
	}
	if p.Language != "en" {
		for i := range rows {
			rows[i].caption = ""
		}
	}
	return rows
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
	add := func(w weight, label string, d fiscal.Decimal) {
		rows = append(rows, amount{label: label, value: money(d), weight: w})
	}
	if s.taxed {
		add(plain, "Subtotal Gravado Página:", s.taxable)
	}
	if s.exempt {
		add(plain, "Subtotal Exento Página:", s.free)
	}
	if s.taxed {
		add(plain, "Subtotal ITBIS Página:", s.itbis)
	}
	if !s.tax.IsZero() {
		add(plain, "Subtotal Impuesto Adicional Página:", s.tax)
		add(detail, "Subtotal Otros Impuestos Adicionales Página:", s.tax)
	}
	add(grand, "Monto Total Página:", s.total())
	return rows
}
