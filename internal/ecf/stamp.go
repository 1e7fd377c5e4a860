package ecf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A SecurityCode identifies a signature on a printed page and in a summary: the
// first six characters of its value. The zero SecurityCode means that there is
// none.
type SecurityCode struct{ text string }

const codeLength = 6

// NewSecurityCode returns the security code of a signature, given the text of its
// value: Base64 without white space. It fails when the text is too short or its
// beginning is not Base64.
func NewSecurityCode(signatureValue string) (SecurityCode, error) {
	if len(signatureValue) < codeLength {
		return SecurityCode{}, errors.New("ecf: security code: the signature value is too short")
	}
	for _, c := range []byte(signatureValue[:codeLength]) {
		if !isAlphanumeric(c) && c != '+' && c != '/' {
			return SecurityCode{}, errors.New("ecf: security code: the signature value is not Base64")
		}
	}
	return SecurityCode{signatureValue[:codeLength]}, nil
}

// String returns the six characters, and "" for the zero SecurityCode.
func (c SecurityCode) String() string { return c.text }

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// An Authority is one of the authority's environments, by its name in the
// authority's addresses.
type Authority string

// The authority's environments.
const (
	TestAuthority          Authority = "testecf"
	CertificationAuthority Authority = "certecf"
	ProductionAuthority    Authority = "ecf"
)

// AuthorityOf returns the authority's environment for one of ours. The sandbox
// never reaches the authority; its stamps name the authority's test environment.
func AuthorityOf(e fiscal.Environment) Authority {
	switch e {
	case fiscal.Production:
		return ProductionAuthority
	case fiscal.Certification:
		return CertificationAuthority
	case fiscal.Sandbox:
	}
	return TestAuthority
}

// A Stamp is the address at which anybody can look up a document at the
// authority. Printed pages show it as a QR code.
type Stamp struct{ address string }

// Stamp returns the stamp of a document with the security code of its signature.
// The order of the parameters is fixed, and every character of the code that is
// not a letter or a digit is escaped, as in the authority's example. Stamp fails
// when the authority has no such environment or the code is zero.
func (d *Document) Stamp(code SecurityCode, authority Authority) (Stamp, error) {
	switch authority {
	case TestAuthority, CertificationAuthority, ProductionAuthority:
	default:
		return Stamp{}, fmt.Errorf("ecf: stamp: the authority has no environment %q", string(authority))
	}
	if code == (SecurityCode{}) {
		return Stamp{}, errors.New("ecf: stamp: the document has no security code")
	}
	if d.HasSummary() {
		b := append([]byte("https://fc.dgii.gov.do/"), authority...)
		b = append(b, "/consultatimbrefc?rncemisor="...)
		b = append(b, d.Issuer.RNC...)
		b = d.ENCF.Append(append(b, "&encf="...))
		b = appendAmount(append(b, "&montototal="...), d.Totals.Total)
		return Stamp{string(appendCode(b, code))}, nil
	}
	b := append([]byte("https://ecf.dgii.gov.do/"), authority...)
	b = append(b, "/consultatimbre?rncemisor="...)
	b = append(b, d.Issuer.RNC...)
	if d.Buyer.TaxID != "" {
		b = append(b, "&rnccomprador="...)
		b = append(b, d.Buyer.TaxID...)
	}
	b = d.ENCF.Append(append(b, "&encf="...))
	b = d.IssueDate.AppendDGII(append(b, "&fechaemision="...))
	b = appendAmount(append(b, "&montototal="...), d.Totals.Total)
	b = append(b, "&fechafirma="...)
	b = append(b, strings.Replace(fiscal.FormatDGIITime(d.SignedAt), " ", "%20", 1)...)
	return Stamp{string(appendCode(b, code))}, nil
}

func appendCode(b []byte, code SecurityCode) []byte {
	b = append(b, "&codigoseguridad="...)
	for _, c := range []byte(code.text) {
		if isAlphanumeric(c) {
			b = append(b, c)
			continue
		}
		b = fmt.Appendf(b, "%%%02X", c)
	}
	return b
}

// String returns the address, and "" for the zero Stamp.
func (s Stamp) String() string { return s.address }
