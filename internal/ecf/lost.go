package ecf

import (
	"fmt"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Lost describes what the XML of an invoice cannot carry as it was sent: texts that
// are cut or left out, a unit that is left out or is not the one that its words name, and
// line breaks that become spaces. Each message starts with the field and says whether the
// printed page has the text in full. It returns nil for most invoices.
func Lost(inv *fiscal.Invoice) []lang.Message {
	var list []lang.Message
	add := func(field string, lost lang.Message) { list = append(list, named(field, lost)) }
	if !fits(clean(inv.ExternalID), maxInternal) {
		add("external_id", lang.Messagef(
			"has more than %d characters; the fiscal document and the printed page omit it",
			"tiene más de %d caracteres; el comprobante y la representación impresa lo omiten", maxInternal))
	}
	if a := inv.Buyer.Address; a != nil {
		_, province := locate(a)
		if full := fullAddress(a, province); !fits(full, maxAddress) {
			add("buyer.address", lang.Messagef(
				"has more than %d characters with its city and country; the fiscal document and the printed page carry %q",
				"tiene más de %d caracteres con su ciudad y país; el comprobante y la representación impresa llevan %q", maxAddress, addressText(a, province)))
		}
	}
	if e := inv.Buyer.Email; e != "" && email(e) == "" {
		add("buyer.email", lang.Messagef(
			"does not fit the tax authority's format; the fiscal document and the printed page omit it",
			"no cumple el formato de la DGII; el comprobante y la representación impresa lo omiten"))
	}
	list = append(list, lostOfLines(inv.Lines)...)
	if terms := clean(inv.PaymentTerms); terms != "" {
		switch short := paymentTerm(terms); {
		case short == terms && !isFlattened(inv.PaymentTerms):
		case short == "":
			add("payment_terms", lang.Messagef(
				"the fiscal document omits them, because its format allows %d letters, digits and spaces; the printed page has them in full",
				"el comprobante los omite, porque su formato permite %d letras, dígitos y espacios; la representación impresa los tiene completos", maxTerm))
		default:
			add("payment_terms", lang.Messagef(
				"the fiscal document carries %q, because its format allows only letters, digits and spaces; the printed page has them in full",
				"el comprobante lleva %q, porque su formato permite solo letras, dígitos y espacios; la representación impresa los tiene completos", short))
		}
	}
	notes := clean(inv.Notes)
	if !fits(notes, maxNotes) {
		add("notes", lang.Messagef(
			"the fiscal document carries the first %d characters; the printed page has the notes in full",
			"el comprobante lleva los primeros %d caracteres; la representación impresa tiene las notas completas", maxNotes-1))
	}
	if isFlattened(inv.Notes) {
		add("notes", lang.Messagef(
			"the fiscal document has spaces in the place of line breaks and tabs; the printed page keeps the line breaks",
			"el comprobante lleva espacios en lugar de saltos de línea y tabuladores; la representación impresa conserva los saltos de línea"))
	}
	return list
}

// lostOfLines describes the losses of all lines, with one message for each field.
func lostOfLines(lines []fiscal.Line) []lang.Message {
	var list []lang.Message
	// add adds one message, that of the first line that has lost something.
	add := func(field string, lost func(*fiscal.Line) bool, message func(first *fiscal.Line) lang.Message) {
		first, count := 0, 0
		for i := range lines {
			if lost(&lines[i]) {
				if count++; count == 1 {
					first = i
				}
			}
		}
		if count == 0 {
			return
		}
		at := lang.Literal(fmt.Sprintf("lines.%d.%s", first, field))
		if count > 1 {
			at = lang.Messagef("%s (and %d other lines)", "%s (y %d líneas más)", at, count-1)
		}
		list = append(list, lang.Messagef("%s: %s", "%s: %s", at, message(&lines[first])))
	}
	add("description", func(l *fiscal.Line) bool { return isFlattened(l.Description) }, func(*fiscal.Line) lang.Message {
		return lang.Messagef(
			"the fiscal document and the printed page have spaces in the place of line breaks and tabs",
			"el comprobante y la representación impresa llevan espacios en lugar de saltos de línea y tabuladores")
	})
	add("sku", func(l *fiscal.Line) bool { return !fits(clean(l.SKU), maxSKU) }, func(*fiscal.Line) lang.Message {
		return lang.Messagef("has more than %d characters; the fiscal document omits it", "tiene más de %d caracteres; el comprobante lo omite", maxSKU)
	})
	add("unit", func(l *fiscal.Line) bool { return l.Unit != "" && l.UnitCode == 0 && unitCode(0, l.Unit) == 0 }, func(*fiscal.Line) lang.Message {
		return lang.Messagef(
			"the tax authority's table has no such unit; the fiscal document omits it, and the printed page shows it; unit_code can name one of the table",
			"la tabla de la DGII no tiene esa unidad; el comprobante la omite y la representación impresa la muestra; unit_code puede indicar una de la tabla")
	})
	add("unit_code", contradictsUnit, func(l *fiscal.Line) lang.Message {
		sent, meant := unitText(l.UnitCode), unitText(unitCode(0, l.Unit))
		return lang.Messagef(
			"%s is not the unit that unit names, %s; the fiscal document and the printed page carry %s",
			"%s no es la unidad que unit indica, %s; el comprobante y la representación impresa llevan %s", sent, meant, sent)
	})
	return list
}

// contradictsUnit reports whether the words of a unit name another unit than its code. A
// code that is not in the authority's table is a warning of its own.
func contradictsUnit(l *fiscal.Line) bool {
	if l.Unit == "" || UnitName(l.UnitCode) == "" {
		return false
	}
	meant := unitCode(0, l.Unit)
	return meant != 0 && meant != l.UnitCode
}

// unitText names a unit of the authority's table.
func unitText(code int) string { return fmt.Sprintf("%d (%s)", code, UnitName(code)) }

// isFlattened reports whether clean replaces line breaks or tabs of a text.
func isFlattened(s string) bool { return strings.ContainsAny(strings.TrimSpace(s), "\t\r\n") }
