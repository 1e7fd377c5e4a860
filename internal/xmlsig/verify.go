package xmlsig

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"time"
)

// A Verified is a document whose signature matches. It proves that nothing was
// changed since the holder of the certificate's key signed it; who that is
// allowed to be, Trusted and the caller decide.
type Verified struct {
	// Document is what was signed, and nothing else: the tree that the digest
	// was made from, without the Signature element.
	Document
	// Certificate is the one in the signature.
	Certificate *x509.Certificate
	// Value is the text of SignatureValue without white space.
	Value string
	// Indented tells that the signature matches only without the white space
	// between elements, which somebody has put there after signing.
	Indented bool
}

// Verify reads a document and its signature. What it returns has been signed;
// there is no other way to the values of the document.
func Verify(raw []byte, limits Limits) (*Verified, error) {
	d, err := Parse(raw, limits)
	if err != nil {
		return nil, err
	}
	s, err := d.signature()
	if err != nil {
		return nil, err
	}
	indented := false
	err = d.matches(s, true)
	if err != nil && d.blanks {
		indented = true
		err = d.matches(s, false)
	}
	if err != nil {
		return nil, err
	}
	return &Verified{Document: d.without(s.at), Certificate: s.certificate, Value: s.value, Indented: indented}, nil
}

// matches reports whether the signature is that of the document, with or without
// the white space between elements: in both the content and SignedInfo, as a
// reader has it who drops white space.
func (d *Document) matches(s *signature, blanks bool) error {
	with := ""
	if !blanks {
		with = ", with or without the white space between elements"
	}
	namespaces := declarations(d.namespaces)
	info := canonical{doc: d, namespaces: namespaces, blanks: blanks, apex: s.info, buf: make([]byte, 0, 1<<10)}
	info.element(s.info)
	sum := sha256.Sum256(info.buf)
	if err := rsa.VerifyPKCS1v15(s.key, crypto.SHA256, sum[:], s.signed); err != nil {
		return refuse(ErrSignature, "SignatureValue is not that of SignedInfo under the key of the certificate%s", with)
	}
	content := canonical{doc: d, namespaces: namespaces, blanks: blanks, skip: s.at, buf: make([]byte, 0, 2*block), digest: sha256.New()}
	content.element(0)
	if !bytes.Equal(content.digest.Sum(nil), s.digest) {
		return refuse(ErrSignature, "DigestValue is not that of the document, which has changed since it was signed%s", with)
	}
	return nil
}

// without returns the document without its signature, which is the last element
// of the root. What is not verified is not even kept.
func (d *Document) without(at int32) Document {
	clear(d.nodes[at:])
	d.nodes[0].end = at
	return Document{nodes: d.nodes[:at:at], namespaces: d.namespaces, blanks: d.blanks}
}

// Trusted reports whether one of these roots vouches for the certificate at an
// instant, for signing. Without roots nothing is trusted.
func (v *Verified) Trusted(roots *x509.CertPool, at time.Time) error {
	if roots == nil { // which the library takes for those of the system
		roots = x509.NewCertPool()
	}
	if err := checkValidity(v.Certificate, at); err != nil {
		return because(ErrCertificate, err)
	}
	const signing = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	if usage := v.Certificate.KeyUsage; usage != 0 && usage&signing == 0 {
		return refuse(ErrCertificate, "its key usage has neither digitalSignature nor nonRepudiation")
	}
	_, err := v.Certificate.Verify(x509.VerifyOptions{
		Roots:       roots,
		CurrentTime: at,
		KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return &refusalError{ErrCertificate, err, "no trusted root has issued it"}
	}
	if err != nil {
		return because(ErrCertificate, err)
	}
	return nil
}
