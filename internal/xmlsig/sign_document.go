package xmlsig

import "crypto/sha256"

// SignDocument signs a parsed document, such as a seed of the authority. It
// writes the document in canonical form, without the white space between its
// elements. It signs only plain documents: it fails with ErrSignature when the
// document has a signature, and with ErrMalformed when its root has no child
// elements, or when it has attributes or namespaces other than prefixes that the
// root declares.
func (id *Identity) SignDocument(d *Document) ([]byte, error) {
	switch {
	case len(d.signatures) > 0:
		return nil, refuse(ErrSignature, "the document already has a signature")
	case !d.Root().HasChildren():
		return nil, refuse(ErrMalformed, "the root has no child elements")
	case len(d.attributes) > 0:
		return nil, refuse(ErrMalformed, "attribute %s in a document to sign; it must have none", excerpt(d.attributes[0].name))
	}
	namespaces := make([]Namespace, len(d.declarations))
	for i, n := range d.declarations {
		if n.node != 0 || n.prefix == "" {
			return nil, refuse(ErrMalformed, "namespace %s in a document to sign; only prefixes on the root are allowed", excerpt(n.uri))
		}
		namespaces[i] = Namespace{n.prefix, n.uri}
	}
	size := len(declarationXML) + signatureSize
	for i := range d.nodes {
		size += 2*len(d.nodes[i].name) + len("<></>") + len(d.nodes[i].text)
	}
	root := d.nodes[0].name
	c := canonicalizer{doc: d, buf: append(make([]byte, 0, size), declarationXML...)}
	c.write()
	digest := sha256.Sum256(c.buf[len(declarationXML):])
	document, _, err := id.seal(c.buf[:len(c.buf)-len("</>")-len(root)], root, declarations(namespaces), digest[:])
	return document, err
}
