package fiscal

import (
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Buyer is who an invoice is made out to.
type Buyer struct {
	LegalName string
	TaxID     string // empty when absent
	// Foreign is true when TaxID is the identifier of a foreigner, not an RNC
	// or cédula.
	Foreign bool
	Email   string   // empty when absent
	Phone   string   // empty when absent
	Address *Address // nil when absent
}

// An Address is the postal address of a buyer. Line2, ProvinceOrState and
// PostalCode are empty when absent.
type Address struct {
	Line1, Line2, City, ProvinceOrState, PostalCode, CountryCode string
}

// maxDocumentName is the number of characters of a name that the e-CF format
// carries.
const maxDocumentName = 150

// DominicanRepublic is the country code of the Dominican Republic, whose
// taxpayers have an RNC or a cédula.
const DominicanRepublic = "DO"

// taxID decides whether the identifier is a foreigner's, which only a consumer
// invoice can carry, and warns about a wrong check digit.
func (c *checker) taxID(r *Request, inv *Invoice) {
	if !r.taxID.ok() || !r.kind.ok() || r.kind.value == Consumer && r.country.state == invalid {
		return
	}
	id := r.taxID.value
	holds := CheckDigitHolds(id)
	switch {
	case len(id) == 10 && (r.kind.value == FiscalCredit || r.country.value == DominicanRepublic):
		c.add("buyer.tax_id", CodeInvalidFormat, lang.Messagef(
			"must be an RNC of 9 digits or a cédula of 11 digits; an identifier of 10 digits is accepted for a foreign buyer on type 32 only",
			"debe ser un RNC de 9 dígitos o una cédula de 11 dígitos; un identificador de 10 dígitos se acepta solo para un comprador extranjero en el tipo 32"))
	case len(id) == 10:
		inv.Buyer.Foreign = true
	case holds:
	case r.kind.value == Consumer && r.country.ok() && r.country.value != DominicanRepublic:
		inv.Buyer.Foreign = true
	default:
		inv.warn(lang.Messagef(
			"buyer.tax_id: the check digit is not that of an RNC or a cédula; please verify the number",
			"buyer.tax_id: el dígito verificador no corresponde a un RNC ni a una cédula; verifique el número"))
	}
}

// buyer reports a missing identifier where the e-CF format requires one: always
// on type 31, and on type 32 from SummaryLimit.
func (c *checker) buyer(r *Request, inv *Invoice, computed bool) {
	if utf8.RuneCountInString(inv.Buyer.LegalName) > maxDocumentName {
		inv.warn(lang.Messagef(
			"buyer.legal_name: has more than 150 characters; the fiscal document carries the first 150",
			"buyer.legal_name: tiene más de 150 caracteres; el comprobante lleva los primeros 150"))
	}
	if r.buyer != valid || r.taxID.state != absent || !r.kind.ok() {
		return
	}
	switch {
	case r.kind.value == FiscalCredit:
		c.add("buyer.tax_id", CodeRequiredForType, lang.Messagef(
			"is required for type 31", "es obligatorio en el tipo 31"))
	case computed && inv.Totals.Total.Cmp(SummaryLimit()) >= 0:
		c.add("buyer.tax_id", CodeRequiredForType, lang.Messagef(
			"is required for type 32 when the total is %s or more; the total is %s",
			"es obligatorio en el tipo 32 cuando el total es de %s o más; el total es %s", money(SummaryLimit()), money(inv.Totals.Total)))
	}
}
