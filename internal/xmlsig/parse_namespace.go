package xmlsig

import "strings"

const (
	prefixXML   = "xml"
	prefixXMLNS = "xmlns"
)

// attribute reads an attribute or a namespace declaration of an element.
func (p *parser) attribute(i int32) error {
	at := p.pos
	if err := p.another(at); err != nil {
		return err
	}
	name, value, err := p.assignment()
	if err != nil {
		return err
	}
	if value, err = p.attributeValue(value, p.pos-1-len(value)); err != nil {
		return err
	}
	prefix, local := splitName(name)
	switch {
	case prefix == prefixXMLNS:
		return p.namespace(i, local, value, at)
	case name == prefixXMLNS:
		return p.namespace(i, "", value, at)
	}
	p.doc.attributes = append(p.doc.attributes, attribute{node: i, name: name, value: value})
	return nil
}

// namespace keeps a namespace declaration. It refuses forms that are wrong, or
// that implementations do not treat in the same way.
func (p *parser) namespace(i int32, prefix, uri string, at int) error {
	switch {
	case len(prefix) >= 3 && strings.EqualFold(prefix[:3], prefixXML):
		return p.fail(at, "the namespace prefix %s is reserved for XML", excerpt(prefix))
	case prefix == "" && uri == "":
	case !isPlainURI(uri):
		return p.fail(at, "namespace %s: must be an absolute http, https or urn name in plain ASCII", excerpt(uri))
	}
	for _, n := range p.doc.declarationsOf(i) {
		if n.prefix == prefix {
			return p.fail(at, "the namespace prefix %s is declared twice", excerpt(prefix))
		}
	}
	p.doc.declarations = append(p.doc.declarations, declaration{i, prefix, uri})
	p.scope = append(p.scope, scoped{prefix, p.space(uri)})
	return nil
}

// space returns the index of a namespace.
func (p *parser) space(uri string) int32 {
	if uri == "" {
		return 0
	}
	index, ok := p.spaces[uri]
	if !ok {
		if p.spaces == nil {
			p.spaces = make(map[string]int32)
		}
		index = int32(len(p.doc.spaces)) //nolint:gosec // Parse limits the number of nodes
		p.spaces[uri] = index
		p.doc.spaces = append(p.doc.spaces, uri)
	}
	return index
}

// resolve finds the namespaces of an element and of its attributes, when its
// start tag has been read. It fails when a prefix is not declared, or when two
// attributes have the same namespace and local name.
func (p *parser) resolve(i int32, at int) error {
	n := &p.doc.nodes[i]
	prefix, _ := splitName(n.name)
	space, ok := p.lookup(prefix)
	if !ok || prefix == prefixXML {
		return p.fail(at, "element %s has a prefix that is not declared", excerpt(n.name))
	}
	n.space = space
	attributes := p.doc.attributesOf(i)
	for k := range attributes {
		a := &attributes[k]
		if prefix, _ := splitName(a.name); prefix != "" {
			if a.space, ok = p.lookup(prefix); !ok {
				return p.fail(at, "attribute %s has a prefix that is not declared", excerpt(a.name))
			}
		}
		for _, b := range attributes[:k] {
			if a.space == b.space && localName(a.name) == localName(b.name) {
				return p.fail(at, "element %s has attribute %s twice", excerpt(n.name), excerpt(a.name))
			}
		}
	}
	return nil
}

// lookup returns the index of the namespace of a prefix, and whether the prefix
// is declared. The default namespace always is.
func (p *parser) lookup(prefix string) (int32, bool) {
	for k := len(p.scope) - 1; k >= 0; k-- {
		if p.scope[k].prefix == prefix {
			return p.scope[k].space, true
		}
	}
	if prefix == prefixXML {
		return p.space(nsXML), true
	}
	return 0, prefix == ""
}

// isPlainURI reports whether every implementation of canonicalization accepts a
// namespace name as absolute. They refuse relative names, and differ on unusual
// ones.
func isPlainURI(uri string) bool {
	if uri == nsXMLNS || uri == nsXML {
		return false // XML binds them to its own prefixes, and to no others
	}
	allowed := "-._~/?=" // no &, which libxml2 does not escape
	rest, ok := strings.CutPrefix(uri, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "https://")
	}
	if !ok {
		rest, ok = strings.CutPrefix(uri, "urn:")
		allowed += ":"
	}
	if !ok || rest == "" || !isLetter(rest[0]) && !isDigit(rest[0]) {
		return false
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest += fragment
	for i := range len(rest) {
		if c := rest[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte(allowed, c) < 0 {
			return false
		}
	}
	return true
}
