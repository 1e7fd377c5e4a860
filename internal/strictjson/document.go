// Package strictjson owns the reading of exactly one unambiguous JSON text: a
// text that no two careful readers can understand differently. It knows no
// domain; what the members mean is decided elsewhere.
package strictjson

// MaxDepth is how deep arrays and objects may stand inside one another.
const MaxDepth = 16

// A Document is one JSON text that was read whole and found unambiguous. It
// keeps the bytes it was made from, which must not change while it lives.
type Document struct {
	body  []byte
	text  string // body once more, so that names and strings are cut out of it for free
	nodes []node
}

// A node is a value, or the name of a member, as offsets into the body. The
// nodes of a document stand in the order of the text, an object's members as
// name and value in turn, so that a tree needs neither pointers nor copies.
type node struct {
	start, end uint32
	next       uint32 // index of the first node past this one and all that it holds
	count      uint32 // elements or members it holds; for a string, 1 when it has escapes
}

// Root returns the value that the whole text is.
func (d *Document) Root() Node { return Node{d, 0} }
