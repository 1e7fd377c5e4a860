package ecf

import (
	"errors"
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A SecurityCode is what a printed page and a summary name a signature by: the
// first six characters of its value. The zero code is none.
type SecurityCode struct{ text string }

const codeLength = 6

// NewSecurityCode returns the code of a signature by the text of its value,
// which is Base64 without white space.
func NewSecurityCode(signatureValue string) (SecurityCode, error) {
	if len(signatureValue) < codeLength {
		return SecurityCode{}, errors.New("ecf: security code: the signature is too short")
	}
	for _, c := range []byte(signatureValue[:codeLength]) {
		if !isAlphanumeric(c) && c != '+' && c != '/' {
			return SecurityCode{}, errors.New("ecf: security code: the signature is not Base64")
		}
	}
	return SecurityCode{signatureValue[:codeLength]}, nil
}

// String returns the six characters, and nothing for the zero code.
func (c SecurityCode) String() string { return c.text }

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// An Authority is one of the authority's environments, as its addresses name
// them.
type Authority string

// The authority's environments.
const (
	TestAuthority          Authority = "testecf"
	CertificationAuthority Authority = "certecf"
	ProductionAuthority    Authority = "ecf"
)

// AuthorityOf returns the authority's environment of one of ours. The sandbox
// has none; its documents are at most tests.
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

// A Stamp is the address at which anybody can ask the authority about a
// document; a page prints it as a QR code.
type Stamp struct{ address string }

// Stamp returns the stamp of a document that was signed with a code. The order
// of the parameters is fixed, and only the code is escaped in full, as in the
// authority's worked example.
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
	b = fiscal.DateOf(d.SignedAt).AppendDGII(append(b, "&fechafirma="...))
	b = appendClock(append(b, "%20"...), d.SignedAt)
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

// String returns the address, and nothing for the zero Stamp.
func (s Stamp) String() string { return s.address }
