package xmlsig

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
)

// whiteSpace is the white space of XML.
const whiteSpace = " \t\r\n"

// maxPrefixes is the largest number of prefixes of an InclusiveNamespaces element.
const maxPrefixes = 16

// A signature holds the values of a Signature element.
type signature struct {
	at, info int32  // the indexes of Signature and SignedInfo
	infoForm method // the canonicalization of SignedInfo
	form     method // the canonicalization of the document
	digest   []byte
	value    string // the text of SignatureValue without white space
	signed   []byte // value, decoded
	keyInfo  keyInfo
}

// signature finds the signature of a document and reads it. It refuses every
// form that is not listed in the comment of Verify.
func (d *Document) signature() (*signature, error) {
	switch len(d.signatures) {
	case 0:
		return nil, ErrNotSigned
	case 1:
	default:
		return nil, refuse(ErrSignature, "the document has %d elements named Signature; it must have one", len(d.signatures))
	}
	s := &signature{at: d.signatures[0]}
	last := int32(0)
	for c := range d.children(0) {
		last = c
	}
	switch {
	case s.at == 0 || s.at != last:
		return nil, refuse(ErrSignature, "Signature must be the last child of the root")
	case s.at == 1:
		return nil, refuse(ErrSignature, "the root has no child but Signature")
	case !d.is(s.at, nsSignature, signatureName):
		return nil, refuse(ErrSignature, "Signature is not in the namespace of XML signatures")
	}
	r := &profileReader{doc: d}
	r.signature(s)
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// A profileReader reads the elements of a signature. It keeps the first error.
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
	r.attributes(s.at, "Id")
	parts := r.elements(s.at, "SignedInfo", "SignatureValue", "KeyInfo")
	if parts == nil {
		return
	}
	s.info = parts[0]
	r.info(s)
	r.attributes(parts[1], "Id")
	s.value, s.signed = r.base64(parts[1], ErrSignature)
	r.attributes(parts[2], "Id")
	r.keyInfo(&s.keyInfo, parts[2])
}

func (r *profileReader) info(s *signature) {
	r.attributes(s.info, "Id")
	parts := r.elements(s.info, "CanonicalizationMethod", "SignatureMethod", "Reference")
	if parts == nil {
		return
	}
	s.infoForm = r.canonicalization(parts[0])
	r.algorithm(parts[1], algSignature)
	r.reference(parts[2])
	parts = r.elements(parts[2], "Transforms", "DigestMethod", "DigestValue")
	if parts == nil {
		return
	}
	r.transforms(s, parts[0])
	r.algorithm(parts[1], algDigest)
	r.attributes(parts[2])
	if _, s.digest = r.base64(parts[2], ErrSignature); len(s.digest) != sha256.Size {
		r.fail("DigestValue has %d bytes; SHA-256 has %d", len(s.digest), sha256.Size)
	}
}

// reference reads the URI of the reference: "" for the document, or "#x" when x
// is the Id of the root and of no other element. Both are the same bytes, because
// the document has nothing but white space outside of its root.
func (r *profileReader) reference(i int32) {
	r.attributes(i, "URI", "Id")
	uri, ok := r.attribute(i, "URI")
	switch {
	case !ok:
		r.fail("Reference has no URI")
	case uri == "":
	default:
		id, isFragment := strings.CutPrefix(uri, "#")
		if !isFragment || !isName(id) || strings.ContainsFunc(id, func(c rune) bool { return c > 0x7f || !isNameByte(byte(c)) }) { //nolint:gosec // c is ASCII
			r.fail("URI of Reference is %s; it must be empty or the Id of the root", excerpt(uri))
			return
		}
		if owners := r.doc.withID(id); len(owners) != 1 || owners[0] != 0 {
			r.fail("URI of Reference is %s, which is not the Id of the root alone", excerpt(uri))
		}
	}
}

// withID returns the elements that have an Id of a value. Without a document type
// nothing says which attributes are Ids, so every attribute that any verifier
// takes for one counts: Id, ID and id without a namespace, and xml:id.
func (d *Document) withID(id string) []int32 {
	var owners []int32
	for _, a := range d.attributes {
		isID := a.space == 0 && strings.EqualFold(a.name, "id") || d.spaces[a.space] == nsXML && localName(a.name) == "id"
		if isID && strings.Trim(a.value, whiteSpace) == id {
			owners = append(owners, a.node)
		}
	}
	return owners
}

// transforms reads the transforms: the enveloped signature alone, or followed by
// a canonicalization. Without one, the digest is that of the inclusive form.
func (r *profileReader) transforms(s *signature, i int32) {
	r.attributes(i)
	names := []string{"Transform", "Transform"}
	if len(slices.Collect(r.doc.children(i))) < 2 {
		names = names[:1]
	}
	for k, transform := range r.elements(i, names...) {
		if k == 0 {
			r.algorithm(transform, algEnveloped)
		} else {
			s.form = r.canonicalization(transform)
		}
	}
}

// canonicalization reads an element whose algorithm is inclusive or exclusive
// canonicalization without comments.
func (r *profileReader) canonicalization(i int32) method {
	r.attributes(i, "Algorithm")
	algorithm, _ := r.attribute(i, "Algorithm")
	switch algorithm {
	case algCanonical:
		r.empty(i)
		return method{}
	case algExclusive:
		return method{exclusive: true, prefixes: r.prefixList(i)}
	}
	r.fail("Algorithm of %s is %s; it must be inclusive or exclusive canonicalization 1.0 without comments", r.name(i), excerpt(algorithm))
	return method{}
}

// prefixList reads the prefixes of the InclusiveNamespaces element, if there is
// one.
func (r *profileReader) prefixList(i int32) []string {
	if r.doc.leaf(i) {
		r.empty(i)
		return nil
	}
	var list []string
	for c := range r.doc.children(i) {
		if c != i+1 || !r.doc.is(c, nsExclusive, "InclusiveNamespaces") {
			r.fail("%s has child %s; it may have one InclusiveNamespaces", r.name(i), excerpt(r.name(c)))
			return nil
		}
		r.attributes(c, "PrefixList")
		r.empty(c)
		text, ok := r.attribute(c, "PrefixList")
		list = strings.Fields(text)
		if !ok || len(list) > maxPrefixes {
			r.fail("PrefixList of InclusiveNamespaces must have at most %d prefixes", maxPrefixes)
			return nil
		}
	}
	for k, prefix := range list {
		switch {
		case prefix == "#default":
			list[k] = ""
		case !isName(prefix) || strings.EqualFold(prefix[:min(3, len(prefix))], prefixXML):
			r.fail("PrefixList of InclusiveNamespaces has %s, which is not a prefix", excerpt(prefix))
		}
	}
	return list
}

// name returns the local name of an element, for messages.
func (r *profileReader) name(i int32) string { return localName(r.doc.nodes[i].name) }

// elements returns the indexes of the children of an element, which must have
// these names in this order.
func (r *profileReader) elements(i int32, names ...string) []int32 {
	if r.err != nil {
		return nil
	}
	found := make([]int32, 0, len(names))
	for c := range r.doc.children(i) {
		if len(found) == len(names) || !r.doc.is(c, nsSignature, names[len(found)]) {
			r.fail("%s has child %s; its children must be %s", r.name(i), excerpt(r.doc.nodes[c].name), strings.Join(names, ", "))
			return nil
		}
		found = append(found, c)
	}
	if len(found) < len(names) {
		r.fail("%s has no child %s", r.name(i), names[len(found)])
		return nil
	}
	return found
}

// attributes refuses an element that has other attributes than these.
func (r *profileReader) attributes(i int32, names ...string) {
	for _, a := range r.doc.attributesOf(i) {
		if a.space != 0 || !slices.Contains(names, a.name) {
			r.fail("%s has attribute %s, which is not accepted", r.name(i), excerpt(a.name))
		}
	}
}

// attribute returns the value of an attribute without a namespace, and whether
// the element has it.
func (r *profileReader) attribute(i int32, name string) (string, bool) {
	for _, a := range r.doc.attributesOf(i) {
		if a.space == 0 && a.name == name {
			return a.value, true
		}
	}
	return "", false
}

// algorithm refuses an element that has another algorithm, or content.
func (r *profileReader) algorithm(i int32, uri string) {
	r.attributes(i, "Algorithm")
	if got, _ := r.attribute(i, "Algorithm"); got != uri {
		r.fail("Algorithm of %s is %s; it must be %q", r.name(i), excerpt(got), uri)
	}
	r.empty(i)
}

// empty refuses an element that has children or a text.
func (r *profileReader) empty(i int32) {
	if !r.doc.leaf(i) || strings.Trim(r.doc.nodes[i].text, whiteSpace) != "" {
		r.fail("%s must be empty", r.name(i))
	}
}

// base64 reads an element that holds Base64, which may have white space. kind is
// the kind of error when it is not Base64.
func (r *profileReader) base64(i int32, kind error) (text string, decoded []byte) {
	n := &r.doc.nodes[i]
	if !r.doc.leaf(i) {
		r.fail("%s must not have children", r.name(i))
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
		r.err = refuse(kind, "%s is not Base64", r.name(i))
	}
	return text, decoded
}
