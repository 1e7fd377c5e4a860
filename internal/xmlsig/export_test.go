package xmlsig

// Canonical returns the canonical form of a document without a signature, with
// or without the white space between elements.
func (d *Document) Canonical(blanks bool) []byte {
	c := canonical{doc: d, namespaces: declarations(d.namespaces), blanks: blanks}
	c.element(0)
	return c.buf
}
