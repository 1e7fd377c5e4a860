package fiscal

import (
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Tax is one entry in the taxes of a line, as the integrator sent it.
type Tax struct {
	Code, Label string
	Rate        Decimal // percent
}

// An Indicator is the authority's billing indicator: how a line is taxed.
type Indicator int

// The billing indicators of the contract.
const (
	Taxed18   Indicator = 1
	Taxed16   Indicator = 2
	ZeroRated Indicator = 3
	Exempt    Indicator = 4
)

// Rate returns the percentage of ITBIS that goes with the indicator.
func (i Indicator) Rate() Decimal {
	switch i {
	case Taxed18:
		return number(18, 0)
	case Taxed16:
		return number(16, 0)
	case ZeroRated, Exempt:
	}
	return Decimal{}
}

// AdditionalTaxRate returns the percentage of an additional tax, codes 001 to 005
// of the authority's Table I. It reports false for other codes, which a request
// cannot express.
func AdditionalTaxRate(code string) (rate Decimal, ok bool) {
	switch code {
	case "001", "004":
		return number(10, 0), true
	case "002":
		return number(2, 0), true
	case "003":
		return number(16, 0), true
	case "005":
		return number(17, 0), true
	}
	return Decimal{}, false
}

type taxKind int

const (
	unknownTax taxKind = iota
	itbisTax           // also the entry that says that a line is exempt
	additionalTax
	selectiveTax // codes 006 to 039, which need data that a request does not have
)

func understoodTaxes() lang.Message {
	return lang.Messagef(
		"is not the code of a known tax; use ITBIS (18, 16 or 0), EXENTO (0), 001 legal tip (10), 002 CDT (2), 003 insurance (16), 004 telecommunications (10) or 005 first plate (17); an exempt line may also have no tax",
		"no es el código de un impuesto conocido; use ITBIS (18, 16 o 0), EXENTO (0), 001 propina legal (10), 002 CDT (2), 003 seguros (16), 004 telecomunicaciones (10) o 005 primera placa (17); una línea exenta puede también no llevar impuestos")
}

// classify returns the kind of a tax entry and, for a tax of Table I, its code. Only the
// code of the entry decides: a tax that is guessed from a label or a rate is a false
// declaration.
func classify(t Tax) (kind taxKind, code string) {
	code = bare(t.Code)
	switch code {
	case "IVA", "VAT", "EXENTO", "EXENTA", "EXEMPT":
		return itbisTax, ""
	case "PROPINA", "PROPINALEGAL", "LEGALTIP":
		code = "001"
	case "CDT":
		code = "002"
	case "ISCSEGUROS":
		code = "003"
	case "ISCTELECOM", "ISCTELECOMUNICACIONES":
		code = "004"
	case "PRIMERAPLACA":
		code = "005"
	}
	switch {
	case strings.Contains(code, "ITBIS"):
		return itbisTax, ""
	case len(code) != 3 || !isDigits(code) || code < "001" || code > "039":
		return unknownTax, ""
	case code <= "005":
		return additionalTax, code
	}
	return selectiveTax, code
}

// KnownTax reports whether a code names a tax, also one that a request cannot express.
func KnownTax(code string) bool {
	kind, _ := classify(Tax{Code: code})
	return kind != unknownTax
}

// bare returns the ASCII letters, in upper case, and digits of s.
func bare(s string) string {
	clean := true
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case isAlphanumeric(r):
			return r
		}
		return -1
	}, s)
}

// taxes sets the indicator and the additional taxes of a line. It reports whether
// both are known.
func (c *checker) taxes(i int, req *lineRequest, line *Line) bool {
	ok, sure := req.taxesState == valid, req.taxesState == valid
	itbis := -1
	for j, t := range req.taxes {
		if req.goodTaxes&(1<<j) == 0 {
			continue
		}
		switch kind, code := c.classify(t); kind {
		case itbisTax:
			if itbis >= 0 {
				c.add(taxField(i, j, "code"), CodeTaxConflict, lang.Messagef(
					"the line already has an entry for ITBIS or for its exemption; a line can have one",
					"la línea ya tiene un ITBIS o su exención; una línea puede tener solo uno"))
				ok, sure = false, false
				continue
			}
			itbis = j
		case additionalTax:
			ok = c.additional(i, j, code, t, line) && ok
		case selectiveTax:
			c.add(taxField(i, j, "code"), CodeUnsupportedTax, lang.Messagef(
				"the selective taxes 006 to 039 are not supported: they need data that this API does not have",
				"los impuestos selectivos 006 a 039 no están disponibles: requieren datos que esta API no tiene"))
			ok = false
		case unknownTax:
			c.add(taxField(i, j, "code"), CodeUnknownTax, understoodTaxes())
			ok, sure = false, false
		}
	}
	if itbis >= 0 && c.indicatorOf(req.taxes[itbis]) == 0 {
		rates := lang.Messagef("must be 18, 16 or 0 for ITBIS", "debe ser 18, 16 o 0 para el ITBIS")
		if saysExempt(req.taxes[itbis].Code) {
			rates = lang.Messagef("must be 0 for an exempt line", "debe ser 0 para una línea exenta")
		}
		c.add(taxField(i, itbis, "rate_percent"), CodeOutOfRange, rates)
		return false
	}
	return sure && c.indicator(i, req, itbis, line) && ok
}

func (c *checker) additional(i, j int, code string, t Tax, line *Line) bool {
	ok := true
	if rate, _ := AdditionalTaxRate(code); !rate.Equal(t.Rate) {
		c.add(taxField(i, j, "rate_percent"), CodeOutOfRange, lang.Messagef(
			"must be %s for tax %s", "debe ser %s para el impuesto %s", rate.String(), code))
		ok = false
	}
	switch {
	case slices.Contains(line.AdditionalTaxes, code):
		c.add(taxField(i, j, "code"), CodeUnsupportedTax, lang.Messagef(
			"tax %s is on the line twice", "el impuesto %s está dos veces en la línea", code))
		return false
	case len(line.AdditionalTaxes) == 2:
		c.add(taxField(i, j, "code"), CodeUnsupportedTax, lang.Messagef(
			"a line can have at most two additional taxes besides ITBIS",
			"una línea puede tener un máximo de dos impuestos adicionales además del ITBIS"))
		return false
	}
	line.AdditionalTaxes = append(line.AdditionalTaxes, code)
	return ok
}

// indicatorOf returns the indicator of an ITBIS entry, and zero when no indicator
// has its rate.
func indicatorOf(t Tax) Indicator {
	exempt := saysExempt(t.Code)
	switch {
	case t.Rate.IsZero() && exempt:
		return Exempt
	case t.Rate.IsZero():
		return ZeroRated
	case exempt:
		return 0
	case t.Rate.Equal(number(18, 0)):
		return Taxed18
	case t.Rate.Equal(number(16, 0)):
		return Taxed16
	}
	return 0
}

// saysExempt reports whether the code or the label of an ITBIS entry names the exemption.
func saysExempt(s string) bool {
	s = bare(s)
	return strings.Contains(s, "EXENT") || strings.Contains(s, "EXEMPT")
}

// indicator sets the indicator of a line. An explicit indicator decides, but must
// agree with the ITBIS entry. Without an entry, the check of the totals finds a
// wrong indicator.
func (c *checker) indicator(i int, req *lineRequest, itbis int, line *Line) bool {
	line.Indicator = Exempt
	if itbis >= 0 {
		line.Indicator = c.indicatorOf(req.taxes[itbis])
	}
	switch req.indicator.state {
	case absent:
		return true
	case invalid:
		return false
	case valid:
	}
	explicit := Indicator(req.indicator.value)
	if itbis >= 0 && !explicit.Rate().Equal(req.taxes[itbis].Rate) {
		c.add(lineField(i, "billing_indicator"), CodeTaxConflict, lang.Messagef(
			"must agree with the ITBIS entry: 1 for 18 percent, 2 for 16, 3 or 4 for 0",
			"debe coincidir con el ITBIS de la línea: 1 para 18 por ciento, 2 para 16, 3 o 4 para 0"))
		return false
	}
	line.Indicator = explicit
	return true
}
