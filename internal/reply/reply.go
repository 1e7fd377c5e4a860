// Package reply reads the documents that buyers send about an e-CF, which are
// acknowledgements (ARECF) and commercial responses (ACECF), and writes the
// acknowledgements that we sign. It reads only verified bytes. Other packages
// decide the effect of a reply on a document.
package reply

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Why a document of another party is refused.
var (
	// ErrSignature means that the document has no signature, or one that xmlsig
	// refuses: of another form, with a weak key, or not matching the document.
	ErrSignature = errors.New("reply: the signature is refused")
	// ErrUntrusted means that the signature matches, but no trusted root has
	// issued the certificate of the signer, or the certificate is not valid now.
	ErrUntrusted = errors.New("reply: the signer is not trusted")
	// ErrMalformed means that the document is not XML that xmlsig reads, or does
	// not have the elements of its format.
	ErrMalformed = errors.New("reply: the document is malformed")
)

// Why a valid commercial response has no effect. The package that stores the
// documents returns these errors.
var (
	// ErrNoDocument means that we have no such document, or that a buyer cannot
	// respond to it.
	ErrNoDocument = errors.New("reply: the document does not exist")
	// ErrMismatch means that the date, the total or the buyer of the response is
	// not that of the document.
	ErrMismatch = errors.New("reply: the response does not match the document")
	// ErrTooMany means that the document has as many responses as are kept.
	ErrTooMany = errors.New("reply: the document has too many responses")
)

// maxKept is the largest size of the canonical form of a reply. A reply with a chain of
// three large certificates has half of it.
const maxKept = 32 << 10

// verifyReply verifies a reply of a buyer and returns its canonical form, which is what
// the service keeps: anyone can pad the bytes that arrive. It fails with ErrMalformed
// too when the canonical form is larger than any reply.
func verifyReply(raw []byte, roots *x509.CertPool, now time.Time) (*xmlsig.Verified, []byte, error) {
	v, err := verify(raw, xmlsig.SmallLimits(), roots, now)
	if err != nil {
		return nil, nil, err
	}
	kept, err := v.Compact(raw, xmlsig.SmallLimits())
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if len(kept) > maxKept {
		return nil, nil, fmt.Errorf("%w: its canonical form has %d bytes; the limit is %d", ErrMalformed, len(kept), maxKept)
	}
	return v, kept, nil
}

// verify verifies the signature of a document and that its signer is trusted at
// now.
func verify(raw []byte, limits xmlsig.Limits, roots *x509.CertPool, now time.Time) (*xmlsig.Verified, error) {
	d, err := xmlsig.Parse(raw, limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	v, err := d.Verify()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if err := v.Trusted(roots, now); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return v, nil
}

// Explain says why a signed message was not believed. The technical cause has only an
// English text.
func Explain(err error) lang.Message {
	switch {
	case errors.Is(err, ErrSignature):
		return lang.Messagef("the signature of the message is not valid: %s", "la firma del mensaje no es válida (detalle técnico: %s)", err)
	case errors.Is(err, ErrUntrusted):
		return lang.Messagef("the signer of the message is not trusted: %s", "el firmante del mensaje no es de confianza (detalle técnico: %s)", err)
	}
	return lang.Messagef("the message is malformed: %s", "el mensaje no tiene el formato correcto (detalle técnico: %s)", err)
}
