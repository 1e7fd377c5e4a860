package xmlsig

import (
	"cmp"
	"hash"
	"slices"
	"strings"
)

// A method is a canonicalization method without comments.
type method struct {
	exclusive bool
	// prefixes are those that exclusive canonicalization treats like inclusive
	// canonicalization does; "" is the default namespace.
	prefixes []string
}

// A binding is a prefix and the namespace that it is bound to. The prefix "" is
// that of the default namespace, and the namespace "" means that there is none.
type binding struct{ prefix, uri string }

// A canonicalizer writes an element in canonical form, by Canonical XML 1.0 or
// Exclusive XML Canonicalization 1.0.
type canonicalizer struct {
	doc    *Document
	method method
	blanks bool  // white space between elements is written
	apex   int32 // the element that is written
	skip   int32 // the descendant that is left out, or 0
	buf    []byte
	digest hash.Hash // receives the written bytes, when it is not nil

	scope    []binding // the declarations in scope, the innermost last
	rendered []binding // the declarations that were written, the innermost last
	own      []binding // the declarations of the current element; reused
	sorted   []attribute
}

// write writes the apex with its descendants. With a digest, the bytes go to the
// digest and not to the buffer.
func (c *canonicalizer) write() {
	for i := range c.ancestors() {
		c.enter(i)
	}
	c.element(c.apex)
	if c.digest != nil {
		c.digest.Write(c.buf)
		c.buf = c.buf[:0]
	}
}

// ancestors returns the ancestors of the apex, the root first.
func (c *canonicalizer) ancestors() func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for i := int32(0); i != c.apex && yield(i); {
			for child := range c.doc.children(i) {
				if c.apex < c.doc.nodes[child].end {
					i = child
					break
				}
			}
		}
	}
}

// enter adds the declarations of an element to the scope.
func (c *canonicalizer) enter(i int32) {
	for _, n := range c.doc.declarationsOf(i) {
		c.scope = append(c.scope, binding{n.prefix, n.uri})
	}
}

// element writes an element and its descendants. The depth of a document is
// bounded.
func (c *canonicalizer) element(i int32) {
	n := &c.doc.nodes[i]
	scope, rendered := len(c.scope), len(c.rendered)
	c.buf = append(c.buf, '<')
	c.buf = append(c.buf, n.name...)
	c.enter(i)
	attributes := c.doc.attributesOf(i)
	c.namespaces(i, attributes)
	c.attributes(i, attributes)
	c.buf = append(c.buf, '>')
	if c.doc.leaf(i) {
		c.buf = AppendText(c.buf, n.text)
	} else {
		for child := range c.doc.children(i) {
			if c.blanks {
				c.buf = append(c.buf, c.doc.nodes[child].before...)
			}
			if child != c.skip {
				c.element(child)
			}
		}
		if c.blanks {
			c.buf = append(c.buf, n.text...)
		}
	}
	c.buf = append(c.buf, '<', '/')
	c.buf = append(c.buf, n.name...)
	c.buf = append(c.buf, '>')
	c.scope, c.rendered = c.scope[:scope], c.rendered[:rendered]
	if c.digest != nil && len(c.buf) >= block {
		c.digest.Write(c.buf)
		c.buf = c.buf[:0]
	}
}

// namespaces writes the namespace declarations of an element that its canonical
// form has: those that differ from the declarations on its written ancestors.
func (c *canonicalizer) namespaces(i int32, attributes []attribute) {
	if len(c.scope) == 0 {
		return
	}
	c.own = c.own[:0]
	switch {
	case c.method.exclusive:
		prefix, _ := splitName(c.doc.nodes[i].name)
		c.declare(prefix)
		for _, a := range attributes {
			if prefix, _ := splitName(a.name); prefix != "" {
				c.declare(prefix)
			}
		}
		// The listed prefixes change only where they are declared.
		if i == c.apex || len(c.doc.declarationsOf(i)) > 0 {
			for _, prefix := range c.method.prefixes {
				c.declare(prefix)
			}
		}
	case i == c.apex:
		for _, b := range c.scope {
			c.declare(b.prefix)
		}
	default:
		for _, n := range c.doc.declarationsOf(i) {
			c.declare(n.prefix)
		}
	}
	slices.SortFunc(c.own, func(a, b binding) int { return strings.Compare(a.prefix, b.prefix) })
	for _, b := range c.own {
		c.buf = append(c.buf, " xmlns"...)
		if b.prefix != "" {
			c.buf = append(c.buf, ':')
			c.buf = append(c.buf, b.prefix...)
		}
		c.buf = append(c.buf, '=', '"')
		c.buf = appendAttribute(c.buf, b.uri)
		c.buf = append(c.buf, '"')
	}
	c.rendered = append(c.rendered, c.own...)
}

// declare adds the declaration of a prefix to those of the current element,
// unless a written ancestor or the element itself already has it.
func (c *canonicalizer) declare(prefix string) {
	uri := find(c.scope, prefix)
	if uri == find(c.rendered, prefix) || prefix == prefixXML {
		return
	}
	if !slices.ContainsFunc(c.own, func(b binding) bool { return b.prefix == prefix }) {
		c.own = append(c.own, binding{prefix, uri})
	}
}

// find returns the innermost namespace of a prefix, and "" when there is none.
func find(list []binding, prefix string) string {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].prefix == prefix {
			return list[i].uri
		}
	}
	return ""
}

// attributes writes the attributes of an element, sorted by namespace and local
// name.
func (c *canonicalizer) attributes(i int32, attributes []attribute) {
	if i == c.apex && i != 0 && !c.method.exclusive {
		attributes = c.inherited(attributes)
	}
	switch len(attributes) {
	case 0:
		return
	case 1:
	default:
		c.sorted = append(c.sorted[:0], attributes...)
		attributes = c.sorted
		slices.SortFunc(attributes, func(a, b attribute) int {
			return cmp.Or(strings.Compare(c.doc.spaces[a.space], c.doc.spaces[b.space]), strings.Compare(localName(a.name), localName(b.name)))
		})
	}
	for _, a := range attributes {
		c.buf = append(c.buf, ' ')
		c.buf = append(c.buf, a.name...)
		c.buf = append(c.buf, '=', '"')
		c.buf = appendAttribute(c.buf, a.value)
		c.buf = append(c.buf, '"')
	}
}

// inherited returns the attributes of the apex together with the xml: attributes
// of its ancestors, such as xml:lang, which inclusive canonicalization copies to
// the apex. The nearest ancestor has precedence.
func (c *canonicalizer) inherited(own []attribute) []attribute {
	all := slices.Clone(own)
	path := slices.Collect(c.ancestors())
	for _, i := range slices.Backward(path) {
		for _, a := range c.doc.attributesOf(i) {
			if c.doc.spaces[a.space] == nsXML && !slices.ContainsFunc(all, func(b attribute) bool { return b.name == a.name }) {
				all = append(all, a)
			}
		}
	}
	return all
}
