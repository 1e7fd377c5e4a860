package fiscal

import (
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// DecodeRegistered reads a request that was registered before, for New. Rules become
// stricter with releases, and what was issued stays as it is: the rules of earlier
// releases apply, which took any date of the calendar and read a tax whose code they did
// not know by its label and its rate. It is for reading alone: nothing is issued by
// these rules.
func DecodeRegistered(doc *strictjson.Document) Request { return decodeRequest(doc, true) }

// classify returns the kind of a tax entry and, for a tax of Table I, its code.
func (c *checker) classify(t Tax) (kind taxKind, code string) {
	kind, code = classify(t)
	if kind == unknownTax && c.registered && (strings.Contains(bare(t.Label), "ITBIS") || t.Rate.IsZero() || t.Rate.Equal(number(18, 0))) {
		return itbisTax, ""
	}
	return kind, code
}

// indicatorOf returns the indicator of an ITBIS entry, and zero when no indicator
// has its rate.
func (c *checker) indicatorOf(t Tax) Indicator {
	switch {
	case !c.registered:
		return indicatorOf(t)
	case t.Rate.Equal(number(18, 0)):
		return Taxed18
	case t.Rate.Equal(number(16, 0)):
		return Taxed16
	case t.Rate.IsZero() && saysExempt(t.Label):
		return Exempt
	}
	return indicatorOf(t)
}
