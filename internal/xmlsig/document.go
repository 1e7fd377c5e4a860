package xmlsig

import (
	"iter"
	"slices"
	"strings"
)

// The namespaces that the package knows.
const (
	nsSignature = "http://www.w3.org/2000/09/xmldsig#"
	nsExclusive = "http://www.w3.org/2001/10/xml-exc-c14n#"
	nsXML       = "http://www.w3.org/XML/1998/namespace" // of the prefix xml
	nsXMLNS     = "http://www.w3.org/2000/xmlns/"        // of the prefix xmlns
)

// A Document is a parsed document. It does not change, so many goroutines may
// read it at once.
type Document struct {
	nodes        []node        // in document order; the first is the root
	attributes   []attribute   // in document order, without namespace declarations
	declarations []declaration // namespace declarations, in document order
	spaces       []string      // namespace names; the first is "", for no namespace
	signatures   []int32       // the elements whose local name is Signature, in any namespace
	blanks       bool          // there is white space between elements
}

// A node is an element. It holds text or elements, never both, so text next to
// elements is white space and needs no node of its own.
type node struct {
	name   string // with its prefix
	before string // the white space before its start tag
	text   string // its text or, when it has children, the white space before its end tag
	end    int32  // the index after its last descendant, which is that of its next sibling
	space  int32  // the index of its namespace
}

type attribute struct {
	node  int32
	space int32 // the index of its namespace
	name  string
	value string
}

// A declaration binds a prefix, or "" for the default namespace, to a namespace.
type declaration struct {
	node        int32
	prefix, uri string
}

// Root returns the root element.
func (d *Document) Root() Element {
	if len(d.nodes) == 0 {
		return Element{}
	}
	return Element{d, 0}
}

// leaf reports whether an element has no children.
func (d *Document) leaf(i int32) bool { return d.nodes[i].end == i+1 }

// children returns the indexes of the children of an element.
func (d *Document) children(i int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for c := i + 1; c < d.nodes[i].end; c = d.nodes[c].end {
			if !yield(c) {
				return
			}
		}
	}
}

// is reports whether an element has a namespace and a local name.
func (d *Document) is(i int32, uri, local string) bool {
	return d.spaces[d.nodes[i].space] == uri && localName(d.nodes[i].name) == local
}

// attributesOf returns the attributes of an element.
func (d *Document) attributesOf(i int32) []attribute {
	if n := len(d.attributes); n == 0 || i < d.attributes[0].node || i > d.attributes[n-1].node {
		return nil // as most elements, which have none
	}
	start, _ := slices.BinarySearchFunc(d.attributes, i, func(a attribute, i int32) int { return int(a.node) - int(i) })
	end := start
	for end < len(d.attributes) && d.attributes[end].node == i {
		end++
	}
	return d.attributes[start:end]
}

// declarationsOf returns the namespace declarations of an element.
func (d *Document) declarationsOf(i int32) []declaration {
	if n := len(d.declarations); n == 0 || i < d.declarations[0].node || i > d.declarations[n-1].node {
		return nil
	}
	start, _ := slices.BinarySearchFunc(d.declarations, i, func(n declaration, i int32) int { return int(n.node) - int(i) })
	end := start
	for end < len(d.declarations) && d.declarations[end].node == i {
		end++
	}
	return d.declarations[start:end]
}

// splitName splits a name into its prefix, "" when there is none, and its local
// name.
func splitName(name string) (prefix, local string) {
	if i := strings.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

func localName(name string) string {
	_, local := splitName(name)
	return local
}

// An Element is one element of a document. The zero Element means that there is
// none: it has no name, no text and no children.
type Element struct {
	d *Document
	i int32
}

// IsZero reports whether e is the zero Element.
func (e Element) IsZero() bool { return e.d == nil }

// Name returns the name of an element without a namespace, as in Version. For an
// element in a namespace it returns {namespace}local, without the prefix, so that
// such an element is never mistaken for one of a format without namespaces.
func (e Element) Name() string {
	if e.d == nil {
		return ""
	}
	n := &e.d.nodes[e.i]
	if n.space == 0 {
		return n.name
	}
	return "{" + e.d.spaces[n.space] + "}" + localName(n.name)
}

// IsSignature reports whether the element is an XML signature.
func (e Element) IsSignature() bool { return e.d != nil && e.d.is(e.i, nsSignature, signatureName) }

// Text returns the text of an element without children, and "" for an element
// with children.
func (e Element) Text() string {
	if e.d == nil || !e.d.leaf(e.i) {
		return ""
	}
	return e.d.nodes[e.i].text
}

// HasChildren reports whether the element has child elements.
func (e Element) HasChildren() bool { return e.d != nil && !e.d.leaf(e.i) }

// Children returns the child elements, in their order.
func (e Element) Children() iter.Seq[Element] {
	return func(yield func(Element) bool) {
		if e.d == nil {
			return
		}
		for c := range e.d.children(e.i) {
			if !yield(Element{e.d, c}) {
				return
			}
		}
	}
}

// Child returns the first child of a name, as Name returns it, or the zero
// Element.
func (e Element) Child(name string) Element {
	for c := range e.Children() {
		if c.Name() == name {
			return c
		}
	}
	return Element{}
}
