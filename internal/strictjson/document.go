// Package strictjson parses JSON texts that all parsers understand in the same
// way: one value, no repeated member names, valid UTF-8. It knows nothing of
// invoices; other packages interpret the members.
package strictjson

// MaxDepth is the largest depth of nested arrays and objects.
const MaxDepth = 16

// A Document is one parsed JSON text. It keeps the bytes that it was parsed from,
// which must not change while the document is used.
type Document struct {
	body  []byte
	text  string // body as a string, so that names and strings need no copies
	nodes []node
}

// A node is a value or the name of a member, as offsets into the body. The nodes
// of a document are in the order of the text, with the name of a member before
// its value. The tree thus needs neither pointers nor copies.
type node struct {
	start, end uint32
	next       uint32 // index of the first node after this one and its descendants
	count      uint32 // number of elements or members; for a string, 1 when it has escapes
}

// Root returns the value of the text.
func (d *Document) Root() Node { return Node{d, 0} }
