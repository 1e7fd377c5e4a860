package reply

import (
	"crypto/x509"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// maxReason is how many characters the reason of a rejection may have.
const maxReason = 250

// A Response is a buyer's commercial response (ACECF), read from its verified
// signature. It is about the document of an issuer and a number; the other
// fields must be those of that document.
type Response struct {
	IssuerRNC string
	ENCF      string
	IssueDate fiscal.Date
	Total     fiscal.Decimal
	BuyerRNC  string
	Accepted  bool
	Reason    string // of a rejection, "" when it gives none
	At        time.Time
	// Signer is the person whom the certificate names. Nothing proves that this
	// person may speak for the buyer.
	Signer string
	XML    []byte // as it came
}

var responseShape = shape{"ACECF", "DetalleAprobacionComercial", []field{
	{name: "Version", says: isVersion},
	{name: "RNCEmisor", says: isRNC},
	{name: "eNCF", says: isENCF},
	{name: "FechaEmision", says: isDate},
	{name: "MontoTotal", says: isAmount},
	{name: "RNCComprador", says: isRNC},
	{name: "Estado", says: oneOf("1", "2")},
	{name: "DetalleMotivoRechazo", optional: true, says: func(s string) bool { return utf8.RuneCountInString(s) <= maxReason }},
	{name: "FechaHoraAprobacionComercial", says: isClock},
}}

// ReadResponse reads a commercial response. Its signer must be trusted now.
func ReadResponse(raw []byte, roots *x509.CertPool, now time.Time) (Response, error) {
	v, err := verify(raw, xmlsig.SmallLimits(), roots, now)
	if err != nil {
		return Response{}, err
	}
	r, err := readResponse(v.Root())
	if err != nil {
		return Response{}, err
	}
	r.Signer, r.XML = xmlsig.Person(v.Certificate), raw
	return r, nil
}

// readResponse reads what a response says.
func readResponse(root xmlsig.Element) (Response, error) {
	said, err := responseShape.read(root)
	if err != nil {
		return Response{}, err
	}
	total, err := fiscal.ParseDecimal(said["MontoTotal"])
	if err != nil {
		return Response{}, fmt.Errorf("%w: MontoTotal: %w", ErrMalformed, err)
	}
	r := Response{
		IssuerRNC: said["RNCEmisor"], ENCF: said["eNCF"], IssueDate: fiscal.ParseDGIIDate(said["FechaEmision"]), Total: total,
		BuyerRNC: said["RNCComprador"], Accepted: said["Estado"] == "1", Reason: said["DetalleMotivoRechazo"],
		At: fiscal.ParseDGIITime(said["FechaHoraAprobacionComercial"]),
	}
	if r.Accepted && r.Reason != "" {
		return Response{}, fmt.Errorf("%w: it accepts, and says why it does not", ErrMalformed)
	}
	return r, nil
}
