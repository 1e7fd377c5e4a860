package reply

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A Head holds the values of a received e-CF that its acknowledgement needs.
type Head struct {
	Root      string // the name of the root element
	IssuerRNC string
	BuyerRNC  string
	ENCF      string
	// Signature is nil when a trusted signer has signed the document. Otherwise
	// it is ErrSignature or ErrUntrusted, and the other fields are not proven.
	Signature error
}

// ReadHead reads the head of an e-CF, signed or not. It fails with ErrMalformed
// when the document cannot be read, or has no issuer, buyer or e-NCF.
func ReadHead(raw []byte, roots *x509.CertPool, now time.Time) (Head, error) {
	d, err := parse(raw, xmlsig.InvoiceLimits())
	if err != nil {
		return Head{}, err
	}
	root := d.Root()
	v, err := verifyDocument(d, roots, now)
	if err == nil {
		root = v.Root()
	}
	header := root.Child("Encabezado")
	text := func(group, name string) string { return strings.TrimSpace(header.Child(group).Child(name).Text()) }
	h := Head{
		Root: root.Name(), IssuerRNC: text("Emisor", "RNCEmisor"), BuyerRNC: text("Comprador", "RNCComprador"),
		ENCF: text("IdDoc", "eNCF"), Signature: err,
	}
	if !fiscal.IsRNC(h.IssuerRNC) || !fiscal.IsRNC(h.BuyerRNC) || !fiscal.IsENCF(h.ENCF) {
		return Head{}, fmt.Errorf("%w: RNCEmisor, RNCComprador and eNCF are required", ErrMalformed)
	}
	return h, nil
}
