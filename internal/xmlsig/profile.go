package xmlsig

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
)

const (
	maxKeyBits     = 8192     // beyond it a verification costs too much
	maxCertificate = 16 << 10 // in Base64

	whiteSpace = " \t\r\n" // what XML calls white space
)

// A signature is what a Signature element of the profile says.
type signature struct {
	at, info    int32 // where Signature and SignedInfo stand
	digest      []byte
	value       string
	signed      []byte // the value, decoded
	certificate *x509.Certificate
	key         *rsa.PublicKey
}

// signature finds the one signature of a document and reads it. Whatever the
// profile does not have is refused, signed or not, understood or not.
func (d *Document) signature() (*signature, error) {
	switch len(d.signatures) {
	case 0:
		return nil, ErrNotSigned
	case 1:
	default:
		return nil, refuse(ErrSignature, "%d elements Signature where one is expected", len(d.signatures))
	}
	s := &signature{at: d.signatures[0]}
	last := int32(0)
	for c := range d.children(0) {
		last = c
	}
	switch {
	case s.at == 0 || s.at != last:
		return nil, refuse(ErrSignature, "Signature is not the last element in the root")
	case s.at == 1:
		return nil, refuse(ErrSignature, "the root holds nothing but Signature")
	}
	r := &profileReader{doc: d}
	r.signature(s)
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// A profileReader reads the elements of a signature until one is wrong.
type profileReader struct {
	doc *Document
	err error
}

func (r *profileReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = refuse(ErrSignature, format, args...)
	}
}

func (r *profileReader) signature(s *signature) {
	r.attribute(s.at, "xmlns", nsSignature)
	parts := r.elements(s.at, "SignedInfo", "SignatureValue", "KeyInfo")
	if parts == nil {
		return
	}
	s.info = parts[0]
	r.info(s)
	s.value, s.signed = r.base64(parts[1], ErrSignature)
	r.bare(parts[2])
	if data := r.elements(parts[2], "X509Data"); data != nil {
		r.bare(data[0])
		if certificates := r.elements(data[0], "X509Certificate"); certificates != nil {
			r.certificate(s, certificates[0])
		}
	}
}

func (r *profileReader) info(s *signature) {
	// Some signers repeat the namespace here, which changes nothing.
	if len(r.doc.attributesOf(s.info)) > 0 {
		r.attribute(s.info, "xmlns", nsSignature)
	}
	parts := r.elements(s.info, "CanonicalizationMethod", "SignatureMethod", "Reference")
	if parts == nil {
		return
	}
	r.algorithm(parts[0], algCanonical)
	r.algorithm(parts[1], algSignature)
	r.attribute(parts[2], "URI", "")
	parts = r.elements(parts[2], "Transforms", "DigestMethod", "DigestValue")
	if parts == nil {
		return
	}
	r.transforms(parts[0])
	r.algorithm(parts[1], algDigest)
	if _, s.digest = r.base64(parts[2], ErrSignature); len(s.digest) != sha256.Size {
		r.fail("DigestValue has %d bytes where SHA-256 has %d", len(s.digest), sha256.Size)
	}
}

// transforms takes the enveloped signature alone, or followed by the
// canonicalization that would be done anyway.
func (r *profileReader) transforms(i int32) {
	r.bare(i)
	algorithms := []string{algEnveloped, algCanonical}
	names := []string{"Transform", "Transform"}
	if len(slices.Collect(r.doc.children(i))) < 2 {
		names = names[:1]
	}
	for k, transform := range r.elements(i, names...) {
		r.algorithm(transform, algorithms[k])
	}
}

// certificate reads the certificate, and refuses a key that proves little.
func (r *profileReader) certificate(s *signature, i int32) {
	if r.err != nil {
		return
	}
	if size := len(r.doc.nodes[i].text); size > maxCertificate {
		r.err = refuse(ErrCertificate, "X509Certificate has %d bytes and may have %d", size, maxCertificate)
		return
	}
	_, der := r.base64(i, ErrCertificate)
	if r.err != nil {
		return
	}
	if s.certificate, r.err = x509.ParseCertificate(der); r.err != nil {
		r.err = because(ErrCertificate, r.err)
		return
	}
	key, ok := s.certificate.PublicKey.(*rsa.PublicKey)
	switch {
	case !ok:
		r.err = &refusalError{ErrCertificate, ErrWeakKey, "a key of kind " + s.certificate.PublicKeyAlgorithm.String() + " where RSA is expected"}
	case key.N.BitLen() < minKeyBits:
		r.err = because(ErrCertificate, ErrWeakKey)
	case key.N.BitLen() > maxKeyBits:
		r.err = refuse(ErrCertificate, "RSA of %d bits where %d at most are expected", key.N.BitLen(), maxKeyBits)
	}
	s.key = key
}

// elements returns where the elements in an element stand, which must be those
// of these names in this order.
func (r *profileReader) elements(i int32, names ...string) []int32 {
	if r.err != nil {
		return nil
	}
	found := make([]int32, 0, len(names))
	for c := range r.doc.children(i) {
		if len(found) == len(names) || r.doc.nodes[c].name != names[len(found)] {
			r.fail("%s in %s, which holds %s", excerpt(r.doc.nodes[c].name), r.doc.nodes[i].name, strings.Join(names, ", "))
			return nil
		}
		found = append(found, c)
	}
	if len(found) < len(names) {
		r.fail("%s ends without %s", r.doc.nodes[i].name, names[len(found)])
		return nil
	}
	return found
}

// bare refuses an element that has attributes.
func (r *profileReader) bare(i int32) {
	for _, a := range r.doc.attributesOf(i) {
		r.fail("attribute %s on %s, which has none", excerpt(a.name), r.doc.nodes[i].name)
	}
}

// attribute refuses an element that has not this attribute with this value, or
// has others.
func (r *profileReader) attribute(i int32, name, value string) {
	met := r.doc.attributesOf(i)
	if len(met) == 0 {
		r.fail("%s has no attribute %s", r.doc.nodes[i].name, name)
	}
	for _, a := range met {
		switch {
		case a.name != name:
			r.fail("attribute %s on %s, which has %s alone", excerpt(a.name), r.doc.nodes[i].name, name)
		case a.value != value:
			r.fail("%s of %s is %s where %q is expected", name, r.doc.nodes[i].name, excerpt(a.value), value)
		}
	}
}

// algorithm refuses an element that does not name an algorithm, and nothing else.
func (r *profileReader) algorithm(i int32, uri string) {
	r.attribute(i, "Algorithm", uri)
	if !r.doc.leaf(i) || r.doc.nodes[i].text != "" {
		r.fail("%s is not empty", r.doc.nodes[i].name)
	}
}

// base64 reads an element that holds Base64, with white space anywhere. What is
// not Base64 is refused as this kind.
func (r *profileReader) base64(i int32, kind error) (text string, decoded []byte) {
	r.bare(i)
	n := &r.doc.nodes[i]
	if !r.doc.leaf(i) {
		r.fail("%s holds elements", n.name)
	}
	if r.err != nil {
		return "", nil
	}
	text = n.text
	if strings.ContainsAny(text, whiteSpace) {
		text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(whiteSpace, c) }), "")
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) == 0 {
		r.err = refuse(kind, "%s is not Base64", n.name)
	}
	return text, decoded
}

// attributesOf returns the attributes of an element, which stand together.
func (d *Document) attributesOf(i int32) []attribute {
	start, _ := slices.BinarySearchFunc(d.attributes, i, func(a attribute, i int32) int { return int(a.node) - int(i) })
	end := start
	for end < len(d.attributes) && d.attributes[end].node == i {
		end++
	}
	return d.attributes[start:end]
}
