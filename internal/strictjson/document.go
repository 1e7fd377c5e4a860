// Package strictjson parses JSON texts that all parsers understand in the same
// way: one value, no repeated member names, valid UTF-8. It knows nothing of
// invoices; other packages interpret the members.
package strictjson

const (
	// MaxDepth is the largest depth of nested arrays and objects.
	MaxDepth = 16
	// MaxMembers is how many members of an object a document keeps.
	MaxMembers = 1024
	// MaxItems is how many elements of an array a document keeps.
	MaxItems = 1024

	// maxNodes is how many values and names a document keeps. The largest invoice,
	// of a thousand lines with twelve taxes each, has fewer.
	maxNodes = 128 << 10
)

// A Document is one parsed JSON text. It keeps the bytes that it was parsed from,
// which must not change while the document is used.
type Document struct {
	body  []byte
	text  string // body as a string, so that names and strings need no copies
	nodes []node

	truncated bool
}

// Truncated reports whether the text has more members, elements or values than a
// document keeps. The methods of Node then show only the first ones; Len counts all
// of them. A caller must refuse such a document.
func (d *Document) Truncated() bool { return d.truncated }

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
