package xmlsig

import (
	"errors"
	"runtime"
	"strings"
	"unicode/utf8"
)

// A tree is a document that a Writer builds instead of XML.
type tree struct {
	doc     Document
	pending []int32         // the elements that are not closed yet
	scratch []byte          // one value
	values  strings.Builder // the texts of several values, so that few are allocated
	raw     bool            // Append was called
}

// valuesSize is the size of a builder of values.
const valuesSize = 4 << 10

// NewDocumentWriter returns a Writer that builds a Document instead of XML, without a
// namespace. nodes is the expected number of elements. Only Document ends it.
func NewDocumentWriter(root string, nodes int) *Writer {
	t := &tree{pending: make([]int32, 0, 8)}
	t.doc = Document{nodes: make([]node, 0, nodes), spaces: []string{""}}
	t.open(root)
	return &Writer{root: root, tree: t}
}

// Document ends the document of NewDocumentWriter. It is the document that Parse returns
// for the XML of the same calls, but nothing is written, digested or parsed. The names
// must be names of XML without a prefix. It fails after Append.
func (w *Writer) Document() (*Document, error) {
	if w.tree == nil || w.tree.raw {
		return nil, errors.New("xmlsig: the writer writes XML, not a document")
	}
	w.tree.close()
	return &w.tree.doc, nil
}

func (t *tree) open(name string) {
	i := int32(len(t.doc.nodes)) //nolint:gosec // a document that we write has fewer elements
	if i%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
	}
	t.doc.nodes = append(t.doc.nodes, node{name: name, end: i + 1})
	t.pending = append(t.pending, i)
	if name == signatureName {
		t.doc.signatures = append(t.doc.signatures, i)
	}
}

func (t *tree) close() {
	last := len(t.pending) - 1
	t.doc.nodes[t.pending[last]].end = int32(len(t.doc.nodes)) //nolint:gosec // as in open
	t.pending = t.pending[:last]
}

func (t *tree) leaf(name, text string) {
	t.open(name)
	t.doc.nodes[len(t.doc.nodes)-1].text = text
	t.pending = t.pending[:len(t.pending)-1]
}

func (t *tree) value(name string, value func([]byte) []byte) {
	t.scratch = value(t.scratch[:0])
	if t.values.Cap()-t.values.Len() < len(t.scratch) {
		t.values = strings.Builder{}
		t.values.Grow(max(valuesSize, len(t.scratch)))
	}
	start := t.values.Len()
	t.values.Write(t.scratch)
	t.leaf(name, t.values.String()[start:])
}

// carried returns a text without the characters that XML cannot carry, as AppendText
// writes it.
func carried(text string) string {
	if checkCharacters(text) == nil {
		return text
	}
	b := make([]byte, 0, len(text))
	for i, r := range text {
		if carries(text[i:], r) {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

// carries reports whether XML can carry the first character r of a text. A byte that is
// no UTF-8 is not a character.
func carries(text string, r rune) bool {
	return isCharacter(r) && (r != utf8.RuneError || strings.HasPrefix(text, string(utf8.RuneError)))
}
