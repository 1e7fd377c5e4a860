package xmlsig

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"
)

const (
	maxKeyBits      = 8192     // the verification with a larger key takes too long
	maxCertificate  = 16 << 10 // in Base64
	maxCertificates = 8
)

// A keyInfo holds the certificates of a signature and the key that it states.
// Neither is signed.
type keyInfo struct {
	certificates []*x509.Certificate // different ones, in the order of the document
	modulus      *big.Int            // of RSAKeyValue, or nil
	exponent     *big.Int
}

// keyInfo reads KeyInfo: one or more X509Data, and optionally KeyName and an
// RSAKeyValue.
func (r *profileReader) keyInfo(k *keyInfo, i int32) {
	for c := range r.doc.children(i) {
		switch {
		case r.err != nil:
			return
		case r.doc.is(c, nsSignature, "X509Data"):
			r.x509Data(k, c)
		case r.doc.is(c, nsSignature, "KeyValue") && k.modulus == nil:
			r.keyValue(k, c)
		case r.doc.is(c, nsSignature, "KeyName"):
			r.text(c)
		default:
			r.fail("KeyInfo has child %s; it may have X509Data, KeyName and one KeyValue", excerpt(r.name(c)))
		}
	}
	if r.err == nil && len(k.certificates) == 0 {
		r.fail("KeyInfo has no X509Certificate")
	}
}

// x509Data reads certificates. The names and numbers next to them only describe
// certificates, so they are ignored.
func (r *profileReader) x509Data(k *keyInfo, i int32) {
	r.attributes(i)
	for c := range r.doc.children(i) {
		switch {
		case r.err != nil:
			return
		case r.doc.is(c, nsSignature, "X509Certificate"):
			r.certificate(k, c)
		case r.doc.is(c, nsSignature, "X509SubjectName"):
			r.text(c)
		case r.doc.is(c, nsSignature, "X509SKI"):
			if r.text(c) != "" {
				r.base64(c, ErrSignature)
			}
		case r.doc.is(c, nsSignature, "X509IssuerSerial"):
			r.issuerSerial(c)
		default:
			r.fail("X509Data has child %s; it may have X509Certificate, X509SubjectName, X509IssuerSerial and X509SKI", excerpt(r.name(c)))
		}
	}
}

// issuerSerial reads a description of a certificate, which some software leaves
// empty.
func (r *profileReader) issuerSerial(i int32) {
	r.attributes(i)
	if r.doc.leaf(i) {
		r.empty(i)
		return
	}
	parts := r.elements(i, "X509IssuerName", "X509SerialNumber")
	if parts == nil {
		return
	}
	r.text(parts[0])
	if number := r.text(parts[1]); strings.Trim(number, "0123456789") != "" {
		r.fail("X509SerialNumber is %s; it must be a decimal number", excerpt(number))
	}
}

// text returns the text of an element without attributes and children.
func (r *profileReader) text(i int32) string {
	r.attributes(i)
	if !r.doc.leaf(i) {
		r.fail("%s must not have children", r.name(i))
	}
	return strings.Trim(r.doc.nodes[i].text, whiteSpace)
}

// keyValue reads an RSA key.
func (r *profileReader) keyValue(k *keyInfo, i int32) {
	r.attributes(i)
	value := r.elements(i, "RSAKeyValue")
	if value == nil {
		return
	}
	r.attributes(value[0])
	parts := r.elements(value[0], "Modulus", "Exponent")
	if parts == nil {
		return
	}
	r.attributes(parts[0])
	r.attributes(parts[1])
	_, modulus := r.base64(parts[0], ErrSignature)
	_, exponent := r.base64(parts[1], ErrSignature)
	k.modulus, k.exponent = new(big.Int).SetBytes(modulus), new(big.Int).SetBytes(exponent)
}

// certificate reads a certificate. The same certificate may occur twice.
func (r *profileReader) certificate(k *keyInfo, i int32) {
	r.attributes(i)
	if r.err != nil {
		return
	}
	if size := len(r.doc.nodes[i].text); size > maxCertificate {
		r.err = refuse(ErrCertificate, "X509Certificate has %d bytes; the limit is %d", size, maxCertificate)
		return
	}
	_, der := r.base64(i, ErrCertificate)
	if r.err != nil || slices.ContainsFunc(k.certificates, func(c *x509.Certificate) bool { return bytes.Equal(c.Raw, der) }) {
		return
	}
	if len(k.certificates) == maxCertificates {
		r.err = refuse(ErrCertificate, "KeyInfo has more than %d certificates", maxCertificates)
		return
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		r.err = because(ErrCertificate, err)
		return
	}
	k.certificates = append(k.certificates, certificate)
}

// signer returns the certificate whose key has made a signature of a digest. It
// fails with ErrCertificate when no certificate has a key that may sign, and with
// ErrSignature when none of these keys has made the signature, when the
// signature states another key, or when two certificates have the key: the
// document would then not say who has signed it.
func (k *keyInfo) signer(digest, signed []byte) (*x509.Certificate, error) {
	var signer *x509.Certificate
	var unfit error
	candidates := 0
	for _, c := range k.certificates {
		key, err := signingKey(c)
		if err != nil {
			if unfit == nil {
				unfit = err
			}
			continue
		}
		candidates++
		if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, signed) != nil {
			continue
		}
		if signer != nil {
			return nil, refuse(ErrSignature, "two different certificates have the key of the signature")
		}
		if k.modulus != nil && (k.modulus.Cmp(key.N) != 0 || k.exponent.Cmp(big.NewInt(int64(key.E))) != 0) {
			return nil, refuse(ErrSignature, "KeyValue is not the key of the signature")
		}
		signer = c
	}
	switch {
	case signer != nil:
		return signer, nil
	case candidates == 0:
		return nil, unfit
	}
	return nil, refuse(ErrSignature, "SignatureValue does not match SignedInfo and the key of any certificate")
}

// signingKey returns the key of a certificate. It fails with ErrCertificate when
// the key is not RSA, is weak or is too large.
func signingKey(c *x509.Certificate) (*rsa.PublicKey, error) {
	key, ok := c.PublicKey.(*rsa.PublicKey)
	switch {
	case !ok:
		return nil, &refusalError{ErrCertificate, ErrWeakKey, "its key is of kind " + c.PublicKeyAlgorithm.String() + "; it must be RSA"}
	case key.N.BitLen() < minKeyBits:
		return nil, because(ErrCertificate, ErrWeakKey)
	case key.N.BitLen() > maxKeyBits:
		return nil, refuse(ErrCertificate, "its key is RSA of %d bits; the limit is %d", key.N.BitLen(), maxKeyBits)
	}
	return key, nil
}
