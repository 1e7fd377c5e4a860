package ecf

import (
	"fmt"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Lost describes what the XML of an invoice cannot carry as it was sent: texts that
// are cut or left out, and line breaks that become spaces. Each message starts with
// the field and says whether the printed page has the text in full. It returns nil
// for most invoices.
func Lost(inv *fiscal.Invoice) []string {
	var list []string
	add := func(field, format string, args ...any) {
		list = append(list, field+": "+fmt.Sprintf(format, args...))
	}
	if a := inv.Buyer.Address; a != nil {
		_, province := locate(a)
		if full := fullAddress(a, province); !fits(full, maxAddress) {
			add("buyer.address", "has more than %d characters with its city and country; the fiscal document and the printed page carry %q", maxAddress, addressText(a, province))
		}
	}
	if e := inv.Buyer.Email; e != "" && email(e) == "" {
		add("buyer.email", "does not fit the tax authority's format; the fiscal document and the printed page omit it")
	}
	list = append(list, lostOfLines(inv.Lines)...)
	if terms := clean(inv.PaymentTerms); terms != "" {
		switch short := paymentTerm(terms); {
		case short == terms && !isFlattened(inv.PaymentTerms):
		case short == "":
			add("payment_terms", "the fiscal document omits them, because its format allows %d letters, digits and spaces; the printed page has them in full", maxTerm)
		default:
			add("payment_terms", "the fiscal document carries %q, because its format allows only letters, digits and spaces; the printed page has them in full", short)
		}
	}
	notes := clean(inv.Notes)
	if !fits(notes, maxNotes) {
		add("notes", "the fiscal document carries the first %d characters; the printed page has the notes in full", maxNotes-1)
	}
	if isFlattened(inv.Notes) {
		add("notes", "the fiscal document has spaces in the place of line breaks and tabs; the printed page keeps the line breaks")
	}
	return list
}

// lostOfLines describes the losses of all lines, with one message for each field.
func lostOfLines(lines []fiscal.Line) []string {
	var list []string
	add := func(field, message string, lost func(*fiscal.Line) bool) {
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
		at := fmt.Sprintf("lines.%d.%s", first, field)
		if count > 1 {
			at += fmt.Sprintf(" (and %d other lines)", count-1)
		}
		list = append(list, at+": "+message)
	}
	add("description", "the fiscal document and the printed page have spaces in the place of line breaks and tabs",
		func(l *fiscal.Line) bool { return isFlattened(l.Description) })
	add("sku", fmt.Sprintf("has more than %d characters; the fiscal document omits it", maxSKU),
		func(l *fiscal.Line) bool { return !fits(clean(l.SKU), maxSKU) })
	return list
}

// isFlattened reports whether clean replaces line breaks or tabs of a text.
func isFlattened(s string) bool { return strings.ContainsAny(strings.TrimSpace(s), "\t\r\n") }
