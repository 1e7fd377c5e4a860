package xmlsig

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Why a document is refused.
var (
	// ErrMalformed is a document that is not the small part of XML that is
	// read here, or that is too large.
	ErrMalformed = errors.New("xmlsig: the document is not XML as it is accepted here")
	// ErrNotSigned is a document without a signature.
	ErrNotSigned = errors.New("xmlsig: the document has no signature")
	// ErrSignature is a signature that is not of the profile, stands in the
	// wrong place or does not match what it signs.
	ErrSignature = errors.New("xmlsig: the signature is refused")
	// ErrCertificate is a certificate that cannot be read, has a weak key, or
	// is not trusted.
	ErrCertificate = errors.New("xmlsig: the certificate is refused")
)

// A refusal is an error of one of the kinds above, with what was met. Its cause
// is another sentinel of the package, or nil.
type refusal struct {
	kind, cause error
	text        string
}

func (r *refusal) Error() string { return r.kind.Error() + ": " + r.text }

func (r *refusal) Unwrap() []error {
	if r.cause == nil {
		return []error{r.kind}
	}
	return []error{r.kind, r.cause}
}

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, args...)}
}

// because refuses for a cause that has its own words.
func because(kind, cause error) error {
	return &refusal{kind, cause, strings.TrimPrefix(cause.Error(), "xmlsig: ")}
}

// excerptSize is how much of what others sent an error may repeat.
const excerptSize = 40

// excerpt quotes the start of a text that others sent.
func excerpt(s string) string {
	if len(s) <= excerptSize {
		return fmt.Sprintf("%q", s)
	}
	end := excerptSize
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%q…", s[:end])
}
