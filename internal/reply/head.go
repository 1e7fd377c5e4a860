package reply

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A Head holds the values of a received e-CF that its acknowledgement needs. They are
// in the signed document. Whether the issuer has delegated the signer is not known: only
// the tax authority knows who may sign for whom.
type Head struct {
	IssuerRNC string
	BuyerRNC  string
	ENCF      string
	Signer    string // the holder of the certificate, as xmlsig.Signer identifies it
}

// ReadHead reads the head of an e-CF whose signer is trusted at now. It fails with
// ErrSignature or ErrUntrusted, and with ErrMalformed when the document cannot be read,
// is no e-CF, or has no issuer, buyer or e-NCF.
func ReadHead(raw []byte, roots *x509.CertPool, now time.Time) (Head, error) {
	v, err := verify(raw, xmlsig.InvoiceLimits(), roots, now)
	if err != nil {
		return Head{}, err
	}
	root := v.Root()
	if root.Name() != "ECF" {
		return Head{}, fmt.Errorf("%w: the root element must be ECF", ErrMalformed)
	}
	header := root.Child("Encabezado")
	text := func(group, name string) string { return strings.TrimSpace(header.Child(group).Child(name).Text()) }
	h := Head{
		IssuerRNC: text("Emisor", "RNCEmisor"), BuyerRNC: text("Comprador", "RNCComprador"), ENCF: text("IdDoc", "eNCF"),
		Signer: xmlsig.Signer(v.Certificate),
	}
	if !fiscal.IsRNC(h.IssuerRNC) || !fiscal.IsRNC(h.BuyerRNC) || !fiscal.IsENCF(h.ENCF) {
		return Head{}, fmt.Errorf("%w: RNCEmisor, RNCComprador and eNCF are required", ErrMalformed)
	}
	return h, nil
}
