package fiscal

import "unicode/utf8"

// A Buyer is who an invoice is made out to.
type Buyer struct {
	LegalName string
	TaxID     string // empty when absent
	// Foreign tells that TaxID is a foreigner's identifier and not an RNC or
	// cédula.
	Foreign bool
	Email   string   // empty when absent
	Phone   string   // empty when absent
	Address *Address // nil when absent
}

// An Address is where a buyer is. Line2, ProvinceOrState and PostalCode are
// empty when absent.
type Address struct {
	Line1, Line2, City, ProvinceOrState, PostalCode, CountryCode string
}

// maxDocumentName is how much of a name the e-CF format carries.
const maxDocumentName = 150

// dominican is the country code of those who have an RNC or a cédula.
const dominican = "DO"

// taxID decides whether the identifier is a foreigner's, which only a consumer
// invoice can carry, and notes a check digit that fails.
func (c *checker) taxID(r *Request, inv *Invoice) {
	if !r.taxID.ok() || !r.kind.ok() || r.kind.value == Consumer && r.country.state == invalid {
		return
	}
	id := r.taxID.value
	holds := checkDigitHolds(id)
	switch {
	case len(id) == 10 && (r.kind.value == FiscalCredit || r.country.value == dominican):
		c.add("buyer.tax_id", CodeInvalidFormat, "must be an RNC of 9 digits or a cédula of 11 digits; 10 digits can only be a foreigner's on type 32")
	case len(id) == 10:
		inv.Buyer.Foreign = true
	case holds:
	case r.kind.value == Consumer && r.country.ok() && r.country.value != dominican:
		inv.Buyer.Foreign = true
	default:
		inv.warn("buyer.tax_id does not have the check digit of an RNC or a cédula; please verify it")
	}
}

// buyer asks for the identifier where the e-CF format does: always on a 31, and
// on a 32 from 250,000.00.
func (c *checker) buyer(r *Request, inv *Invoice, computed bool) {
	if utf8.RuneCountInString(inv.Buyer.LegalName) > maxDocumentName {
		inv.warn("buyer.legal_name has more than 150 characters; the document carries the first 150")
	}
	if r.buyer != valid || r.taxID.state != absent || !r.kind.ok() {
		return
	}
	switch {
	case r.kind.value == FiscalCredit:
		c.add("buyer.tax_id", CodeRequiredForType, "is required for type 31")
	case computed && inv.Totals.Total.Cmp(SummaryLimit()) >= 0:
		c.add("buyer.tax_id", CodeRequiredForType, "is required for type 32 when the total is "+money(SummaryLimit())+" or more; it is "+money(inv.Totals.Total))
	}
}
