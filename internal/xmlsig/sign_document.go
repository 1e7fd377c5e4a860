package xmlsig

import "crypto/sha256"

// SignDocument signs a parsed document, such as a seed of the authority. It
// writes the document in canonical form, without the white space between its
// elements. It fails when the document has a signature or its root has no child
// elements.
func (id *Identity) SignDocument(d *Document) ([]byte, error) {
	if len(d.signatures) > 0 {
		return nil, refuse(ErrSignature, "the document already has a signature")
	}
	if !d.Root().HasChildren() {
		return nil, refuse(ErrMalformed, "the root has no child elements")
	}
	size := len(declaration) + signatureSize
	for i := range d.nodes {
		size += 2*len(d.nodes[i].name) + len("<></>") + len(d.nodes[i].text)
	}
	root := d.nodes[0].name
	c := canonical{doc: d, namespaces: declarations(d.namespaces), buf: append(make([]byte, 0, size), declaration...)}
	c.element(0)
	digest := sha256.Sum256(c.buf[len(declaration):])
	document, _, err := id.seal(c.buf[:len(c.buf)-len("</>")-len(root)], root, c.namespaces, digest[:])
	return document, err
}
