package xmlsig

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Why a document is refused.
var (
	// ErrMalformed means that the document is not in the part of XML that Parse
	// accepts, or is too large.
	ErrMalformed = errors.New("xmlsig: the document is not XML of the accepted form")
	// ErrNotSigned means that the document has no signature.
	ErrNotSigned = errors.New("xmlsig: the document has no signature")
	// ErrSignature means that the signature has another form than Verify
	// accepts, is in the wrong position, or does not match the document.
	ErrSignature = errors.New("xmlsig: the signature is refused")
	// ErrCertificate means that the certificate cannot be read, has a weak key,
	// or is not trusted.
	ErrCertificate = errors.New("xmlsig: the certificate is refused")
)

// A refusalError is an error of one of the kinds above with its details. Its
// cause is another error of the package, or nil.
type refusalError struct {
	kind, cause error
	text        string
}

func (r *refusalError) Error() string { return r.kind.Error() + ": " + r.text }

func (r *refusalError) Unwrap() []error {
	if r.cause == nil {
		return []error{r.kind}
	}
	return []error{r.kind, r.cause}
}

func refuse(kind error, format string, args ...any) error {
	return &refusalError{kind: kind, text: fmt.Sprintf(format, args...)}
}

// because returns a refusal with the text of its cause.
func because(kind, cause error) error {
	return &refusalError{kind, cause, strings.TrimPrefix(cause.Error(), "xmlsig: ")}
}

// excerptSize is the number of bytes of a document that an error may repeat.
const excerptSize = 40

// excerpt quotes the start of a text of the document.
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
