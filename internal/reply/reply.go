// Package reply owns what buyers and issuers answer each other about a
// document: acknowledgements (ARECF) and commercial responses (ACECF), read
// from verified bytes alone, and the acknowledgement that we sign. What an
// answer does to a document is not its business.
package reply

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Why a document of others is refused. A receiver tells a bad signature (the
// first two) from everything else.
var (
	// ErrSignature is a document without a signature, or with one that is not
	// of the profile, has a weak key or does not match.
	ErrSignature = errors.New("reply: the signature is refused")
	// ErrUntrusted is a signature that matches, by somebody for whom none of the
	// trusted roots vouches now.
	ErrUntrusted = errors.New("reply: the signer is not trusted")
	// ErrMalformed is a document that cannot be read, or does not say what a
	// document of its kind says.
	ErrMalformed = errors.New("reply: the document is malformed")
)

// Why a response that is well formed and signed has no effect. Whoever keeps the
// documents tells.
var (
	// ErrNoDocument is a response about a document that is none of ours, or that
	// nobody can respond to.
	ErrNoDocument = errors.New("reply: there is no such document")
	// ErrMismatch is a response whose date, total or buyer is not that of the
	// document.
	ErrMismatch = errors.New("reply: the document says otherwise")
)

// verify returns what was signed, by somebody who is trusted now.
func verify(raw []byte, limits xmlsig.Limits, roots *x509.CertPool, now time.Time) (*xmlsig.Verified, error) {
	v, err := xmlsig.Verify(raw, limits)
	switch {
	case errors.Is(err, xmlsig.ErrMalformed):
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if err := v.Trusted(roots, now); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	return v, nil
}
