package xmlsig

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"time"
)

// A Verified is a document whose signature matches: nothing was changed since the
// holder of the certificate's key signed it. Trusted and the caller decide
// whether this signer is the right one.
type Verified struct {
	// Document is the signed content and nothing else: the tree whose canonical
	// form was digested, without the Signature element.
	Document
	// Certificate is the certificate of the signer: the one in the signature
	// whose key has made it.
	Certificate *x509.Certificate
	// Value is the text of SignatureValue without white space.
	Value string
	// Indented is true when the signature matches only without the white space
	// between elements, which was then added after signing.
	Indented bool

	others []*x509.Certificate // the other certificates in the signature
}

// Verify parses a document and verifies its signature. The returned document is
// the only way to its values, and holds only what was signed.
//
// The signature must be the last child of the root, with any prefix. It has one
// reference, to the whole document: an empty URI or the Id of the root. The
// transforms are the enveloped signature and optionally one canonicalization.
// The canonicalizations, of SignedInfo and of the document, are inclusive or
// exclusive 1.0 without comments; the algorithms are SHA-256 and RSA with
// SHA-256. KeyInfo has the certificate of the signer, and may have others,
// descriptions of certificates, and the key again. Every other form is refused.
//
// Verify fails with ErrMalformed, ErrNotSigned, ErrSignature or ErrCertificate.
func Verify(raw []byte, limits Limits) (*Verified, error) {
	d, err := Parse(raw, limits)
	if err != nil {
		return nil, err
	}
	return d.Verify()
}

// Verify verifies the signature of a parsed document, as the function Verify does.
// When it succeeds it removes the signature from the document.
func (d *Document) Verify() (*Verified, error) {
	s, err := d.signature()
	if err != nil {
		return nil, err
	}
	indented := false
	signer, err := d.matches(s, true)
	if err != nil && d.blanks {
		indented = true
		signer, err = d.matches(s, false)
	}
	if err != nil {
		return nil, err
	}
	v := &Verified{Document: d.without(s.at), Certificate: signer, Value: s.value, Indented: indented}
	for _, c := range s.keyInfo.certificates {
		if c != signer {
			v.others = append(v.others, c)
		}
	}
	return v, nil
}

// matches returns the certificate of the signer when the signature matches the
// document, with or without the white space between elements. White space is
// ignored in both the document and SignedInfo, as by a parser that drops it.
func (d *Document) matches(s *signature, blanks bool) (*x509.Certificate, error) {
	info := canonicalizer{doc: d, method: s.infoForm, blanks: blanks, apex: s.info, buf: make([]byte, 0, 2<<10)}
	info.write()
	sum := sha256.Sum256(info.buf)
	signer, err := s.keyInfo.signer(sum[:], s.signed)
	if err != nil {
		return nil, err
	}
	content := canonicalizer{doc: d, method: s.form, blanks: blanks, skip: s.at, buf: make([]byte, 0, 2*block), digest: sha256.New()}
	content.write()
	if !bytes.Equal(content.digest.Sum(nil), s.digest) {
		return nil, refuse(ErrSignature, "DigestValue is not that of the document, which was changed after it was signed")
	}
	return signer, nil
}

// without returns the document without its signature, which is the last child of
// the root, and without everything else that was not verified.
func (d *Document) without(at int32) Document {
	v := *d
	clear(d.nodes[at:])
	d.nodes[0].end = at
	v.nodes, v.signatures = d.nodes[:at:at], nil
	for i, a := range d.attributes {
		if a.node >= at {
			v.attributes = d.attributes[:i:i]
			break
		}
	}
	for i, n := range d.declarations {
		if n.node >= at {
			v.declarations = d.declarations[:i:i]
			break
		}
	}
	return v
}

// Trusted fails with ErrCertificate unless one of the roots has issued the
// certificate of the signer, directly or by the other certificates in the
// signature, and the certificate is valid at an instant and may sign. Without
// roots it always fails.
func (v *Verified) Trusted(roots *x509.CertPool, at time.Time) error {
	if roots == nil { // x509 would use the roots of the system
		roots = x509.NewCertPool()
	}
	if err := checkValidity(v.Certificate, at); err != nil {
		return because(ErrCertificate, err)
	}
	const signing = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	if usage := v.Certificate.KeyUsage; usage != 0 && usage&signing == 0 {
		return refuse(ErrCertificate, "its key usage has neither digitalSignature nor nonRepudiation")
	}
	intermediates := x509.NewCertPool()
	for _, c := range v.others {
		intermediates.AddCert(c)
	}
	_, err := v.Certificate.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		CurrentTime:   at,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return &refusalError{ErrCertificate, err, "no trusted root has issued it"}
	}
	if err != nil {
		return because(ErrCertificate, err)
	}
	return nil
}
