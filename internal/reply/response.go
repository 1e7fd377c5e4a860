package reply

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// maxReason is the largest number of characters in the reason of a rejection.
const maxReason = 250

// A Response is a buyer's commercial response (ACECF) whose signature was
// verified. IssuerRNC and ENCF identify the document; the caller must compare
// IssueDate, Total and BuyerRNC with it.
type Response struct {
	IssuerRNC string
	ENCF      string
	IssueDate fiscal.Date
	Total     fiscal.Decimal
	BuyerRNC  string
	Accepted  bool
	Reason    string // of a rejection, in one line; "" when there is none
	At        time.Time
	// Signer identifies the holder of the certificate, as xmlsig.Signer does. The
	// certificate does not prove that this person acts for the buyer.
	Signer string
	XML    []byte // the canonical form of what was received
}

var responseShape = shape{"ACECF", "DetalleAprobacionComercial", []field{
	{name: "Version", valid: isVersion},
	{name: "RNCEmisor", valid: fiscal.IsRNC},
	{name: "eNCF", valid: fiscal.IsENCF},
	{name: "FechaEmision", valid: isDate},
	{name: "MontoTotal", valid: isAmount},
	{name: "RNCComprador", valid: fiscal.IsRNC},
	{name: "Estado", valid: oneOf("1", "2")},
	{name: "DetalleMotivoRechazo", optional: true, valid: func(s string) bool { return utf8.RuneCountInString(s) <= maxReason }},
	{name: "FechaHoraAprobacionComercial", valid: isTime},
}}

// ReadResponse reads a commercial response whose signer is trusted at now. It
// fails with ErrSignature, ErrUntrusted or ErrMalformed.
func ReadResponse(raw []byte, roots *x509.CertPool, now time.Time) (Response, error) {
	v, kept, err := verifyReply(raw, roots, now)
	if err != nil {
		return Response{}, err
	}
	r, err := readResponse(v.Root())
	if err != nil {
		return Response{}, err
	}
	r.Signer, r.XML = xmlsig.Signer(v.Certificate), kept
	return r, nil
}

// readResponse reads the values of a response.
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
		BuyerRNC: said["RNCComprador"], Accepted: said["Estado"] == "1", Reason: printable(said["DetalleMotivoRechazo"]),
		At: fiscal.ParseDGIITime(said["FechaHoraAprobacionComercial"]),
	}
	if r.Accepted && r.Reason != "" {
		return Response{}, fmt.Errorf("%w: Estado says accepted, but DetalleMotivoRechazo has a reason", ErrMalformed)
	}
	return r, nil
}

// printable replaces control characters by spaces. A stranger writes the text, and
// people read it in terminals and logs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
