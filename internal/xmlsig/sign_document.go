package xmlsig

import "crypto/sha256"

// SignDocument signs a document that others wrote, such as a seed: in canonical
// form and without the white space between its elements. The document must be
// without a signature, and its root must hold elements.
func (id *Identity) SignDocument(d *Document) ([]byte, error) {
	if len(d.signatures) > 0 {
		return nil, refuse(ErrSignature, "the document has an element Signature already")
	}
	if !d.Root().HasChildren() {
		return nil, refuse(ErrMalformed, "the root holds no elements, beside which a signature could stand")
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
