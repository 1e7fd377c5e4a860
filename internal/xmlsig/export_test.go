package xmlsig

// Canonical returns the inclusive canonical form of a document without a
// signature, with or without the white space between elements.
func (d *Document) Canonical(blanks bool) []byte {
	c := canonicalizer{doc: d, blanks: blanks}
	c.write()
	return c.buf
}

// CanonicalExclusive returns the exclusive canonical form of a document without a
// signature. The prefixes are those of an InclusiveNamespaces element.
func (d *Document) CanonicalExclusive(prefixes ...string) []byte {
	c := canonicalizer{doc: d, blanks: true, method: method{exclusive: true, prefixes: prefixes}}
	c.write()
	return c.buf
}
