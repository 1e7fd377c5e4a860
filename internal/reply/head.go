package reply

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A Head is what it takes to answer for a received e-CF: who is meant by it.
type Head struct {
	Root      string
	IssuerRNC string
	BuyerRNC  string
	ENCF      string
	// Signature is nil when the document is signed by somebody who is trusted;
	// else ErrSignature or ErrUntrusted, and nothing of the head is proven.
	Signature error
}

// ReadHead reads the head of an e-CF, signed or not. The error is ErrMalformed
// when it cannot be read, or does not say whose it is and for whom.
func ReadHead(raw []byte, roots *x509.CertPool, now time.Time) (Head, error) {
	v, err := verify(raw, xmlsig.InvoiceLimits(), roots, now)
	var root xmlsig.Element
	switch {
	case errors.Is(err, ErrMalformed):
		return Head{}, err
	case err == nil:
		root = v.Root()
	default:
		d, err := xmlsig.Parse(raw, xmlsig.InvoiceLimits())
		if err != nil {
			return Head{}, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		root = d.Root()
	}
	header := root.Child("Encabezado")
	text := func(group, name string) string { return strings.TrimSpace(header.Child(group).Child(name).Text()) }
	h := Head{
		Root: root.Name(), IssuerRNC: text("Emisor", "RNCEmisor"), BuyerRNC: text("Comprador", "RNCComprador"),
		ENCF: text("IdDoc", "eNCF"), Signature: err,
	}
	if !isRNC(h.IssuerRNC) || !isRNC(h.BuyerRNC) || !isENCF(h.ENCF) {
		return Head{}, fmt.Errorf("%w: it has no issuer, buyer and e-NCF", ErrMalformed)
	}
	return h, nil
}
