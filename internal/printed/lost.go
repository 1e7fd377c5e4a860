package printed

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// Lost describes the characters of an invoice that the printed page replaces,
// because its fonts do not have them. Each message starts with the field. It
// returns nil for most invoices.
func Lost(inv *fiscal.Invoice) []lang.Message {
	var l lost
	l.text("buyer.legal_name", inv.Buyer.LegalName)
	l.text("buyer.email", inv.Buyer.Email)
	l.text("buyer.phone", inv.Buyer.Phone)
	if a := inv.Buyer.Address; a != nil {
		l.text("buyer.address.line1", a.Line1)
		l.text("buyer.address.line2", a.Line2)
		l.text("buyer.address.city", a.City)
		l.text("buyer.address.province_or_state", a.ProvinceOrState)
		l.text("buyer.address.postal_code", a.PostalCode)
	}
	l.lines(inv.Lines, "description", func(line *fiscal.Line) string { return line.Description })
	l.lines(inv.Lines, "unit", func(line *fiscal.Line) string {
		if ecf.UnitName(line.UnitCode) != "" {
			return "" // the page shows the unit of the code
		}
		return line.Unit
	})
	l.text("purchase_order", inv.PurchaseOrder)
	l.text("payment_terms", inv.PaymentTerms)
	l.text("notes", inv.Notes)
	return l.messages
}

// A lost collects messages.
type lost struct{ messages []lang.Message }

// text reports the characters of a field that the page replaces.
func (l *lost) text(field, s string) {
	if list := replaced(s); len(list) > 0 {
		l.add(field, list, 1)
	}
}

// lines reports a field of the lines: all replaced characters in one message, with
// the first line that has one.
func (l *lost) lines(lines []fiscal.Line, name string, text func(*fiscal.Line) string) {
	var list []rune
	first, count := 0, 0
	for i := range lines {
		found := replaced(text(&lines[i]))
		if len(found) == 0 {
			continue
		}
		if count == 0 {
			first = i
		}
		count++
		list = append(list, found...)
	}
	if count > 0 {
		l.add(fmt.Sprintf("lines.%d.%s", first, name), list, count)
	}
}

// maxNamed is how many different characters a message names.
const maxNamed = 5

func (l *lost) add(field string, list []rune, texts int) {
	slices.Sort(list)
	list = slices.Compact(list)
	var shown []string
	for _, r := range list[:min(len(list), maxNamed)] {
		shown = append(shown, fmt.Sprintf("U+%04X", r))
	}
	names := lang.Literal(strings.Join(shown, ", "))
	if more := len(list) - len(shown); more > 0 {
		names = lang.Messagef("%s, %d more", "%s y %d más", names, more)
	}
	at := lang.Literal(field)
	if texts > 1 {
		at = lang.Messagef("%s (and %d other lines)", "%s (y %d líneas más)", at, texts-1)
	}
	l.messages = append(l.messages, lang.Messagef(
		"%s: the printed page shows %s for characters that its font does not have: %s",
		"%s: la representación impresa muestra %s en lugar de los caracteres que su letra no tiene: %s", at, string(missing), names))
}

// isLatin1 reports whether a text has only printable characters of Latin-1, which both
// fonts have. Most texts do.
func isLatin1(s string) bool {
	for _, r := range s {
		if r < 0x20 || r > 0x7e && r < 0xa1 || r == '\u00AD' || r > 0xff {
			return false
		}
	}
	return true
}

// replaced returns the characters of a text that the page replaces.
func replaced(s string) (list []rune) {
	if isLatin1(s) {
		return nil
	}
	for _, r := range norm.NFC.String(s) {
		if r != missing && printableRune(r) == missing {
			list = append(list, r)
		}
	}
	return list
}

// printableRune returns what the page shows for a character: the character, a
// space, missing, or -1 for nothing.
func printableRune(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case r == '\u00AD': // a soft hyphen, which marks where a word may break
		return -1
	case has(r):
		return r
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		return -1
	}
	return missing
}
