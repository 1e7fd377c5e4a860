package xmlsig

import "iter"

// A Document is what was read of a document: its elements and their text. It is
// never changed, and many may read it at once.
type Document struct {
	nodes      []node // in document order; the first is the root
	namespaces []Namespace
	attributes []attribute // inside Signature; there are no others
	signatures []int32     // every element of that name, wherever it stands
	blanks     bool        // there is white space between elements
}

// A node is an element. It holds text or elements, never both, so that text
// beside elements is white space and needs no node of its own.
type node struct {
	name   string
	before string // the white space before its start tag
	text   string // its text or, when it holds elements, the white space before its end tag
	end    int32  // where its descendants end; the next sibling, if there is one
}

type attribute struct {
	node        int32
	name, value string
}

// Root returns the element that holds all others.
func (d *Document) Root() Element {
	if len(d.nodes) == 0 {
		return Element{}
	}
	return Element{d, 0}
}

// leaf reports whether an element holds no elements.
func (d *Document) leaf(i int32) bool { return d.nodes[i].end == i+1 }

// children returns where the elements in an element stand.
func (d *Document) children(i int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for c := i + 1; c < d.nodes[i].end; c = d.nodes[c].end {
			if !yield(c) {
				return
			}
		}
	}
}

// An Element is one element of a document. The zero Element is none: it has no
// name, no text and no children.
type Element struct {
	d *Document
	i int32
}

// IsZero reports whether there is no such element.
func (e Element) IsZero() bool { return e.d == nil }

// Name returns the name of the element.
func (e Element) Name() string {
	if e.d == nil {
		return ""
	}
	return e.d.nodes[e.i].name
}

// Text returns the text of an element that holds text alone, and nothing for
// one that holds elements.
func (e Element) Text() string {
	if e.d == nil || !e.d.leaf(e.i) {
		return ""
	}
	return e.d.nodes[e.i].text
}

// HasChildren reports whether the element holds elements.
func (e Element) HasChildren() bool { return e.d != nil && !e.d.leaf(e.i) }

// Children returns the elements in the element, in their order.
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

// Child returns the first element of a name in the element, or the zero Element.
func (e Element) Child(name string) Element {
	for c := range e.Children() {
		if c.Name() == name {
			return c
		}
	}
	return Element{}
}
