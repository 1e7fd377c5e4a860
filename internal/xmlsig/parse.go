package xmlsig

import (
	"math"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Limits are the limits of a document. Nodes are elements and attributes, with
// namespace declarations; the root has depth 1.
type Limits struct{ Bytes, Nodes, Depth int }

// SmallLimits are the limits of documents with a few fields: seeds,
// acknowledgements and approvals.
func SmallLimits() Limits { return Limits{Bytes: 256 << 10, Nodes: 2_000, Depth: 16} }

// InvoiceLimits are the limits of documents with many lines.
func InvoiceLimits() Limits { return Limits{Bytes: 8 << 20, Nodes: 64_000, Depth: 16} }

// maxAttributes is the largest number of attributes and namespace declarations of
// an element.
const maxAttributes = 16

// yieldEvery is how many nodes Parse reads before it lets other goroutines run. A
// large document would otherwise delay other work for milliseconds.
const yieldEvery = 1024

const signatureName = "Signature"

// Parse parses a document, with or without a signature. It verifies nothing. It
// accepts the part of XML that all parsers read in the same way and that the
// formats need: elements, attributes, namespaces, text, the five predefined
// entities and character references, in UTF-8. It fails with ErrMalformed on a
// document type, a comment, a processing instruction, a CDATA section, text next
// to elements, a name that is not ASCII, a relative namespace name, and a
// document that exceeds the limits.
func Parse(raw []byte, limits Limits) (*Document, error) {
	if len(raw) > limits.Bytes {
		return nil, refuse(ErrMalformed, "the document has %d bytes; the limit is %d", len(raw), limits.Bytes)
	}
	s := string(raw)
	if err := checkCharacters(s); err != nil {
		return nil, err
	}
	limits.Nodes = min(limits.Nodes, math.MaxInt32-1)
	// Most elements have two tags, so this is about the number of elements.
	likely := min(strings.Count(s, "<")/2+1, limits.Nodes)
	p := &parser{s: s, limits: limits, doc: &Document{nodes: make([]node, 0, likely), spaces: []string{""}}}
	if err := p.document(); err != nil {
		return nil, err
	}
	return p.doc, nil
}

// checkCharacters refuses bytes that are not UTF-8 and characters that XML 1.0
// does not have.
func checkCharacters(s string) error {
	if !utf8.ValidString(s) {
		for i, r := range s {
			if r == utf8.RuneError {
				if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
					return refuse(ErrMalformed, "byte %d: 0x%02x is not UTF-8, which is the only supported encoding", i, s[i])
				}
			}
		}
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 && c != '\n' && c != '\r' && c != '\t':
			return refuse(ErrMalformed, "byte %d: XML does not allow the control character 0x%02x", i, c)
		case c == 0xef && (s[i:i+3] == "\uFFFE" || s[i:i+3] == "\uFFFF"):
			return refuse(ErrMalformed, "byte %d: XML does not allow U+FFFE and U+FFFF", i)
		}
	}
	return nil
}

type parser struct {
	s      string
	pos    int
	limits Limits
	doc    *Document
	count  int // of nodes
	open   []openElement
	scope  []scoped         // the namespace declarations in scope, the innermost last
	spaces map[string]int32 // the indexes in doc.spaces
}

// An openElement is an element whose end tag has not been read.
type openElement struct {
	node  int32
	scope int // the length of parser.scope outside of the element
}

// A scoped is a prefix and the index of its namespace.
type scoped struct {
	prefix string
	space  int32
}

func (p *parser) fail(at int, format string, args ...any) error {
	return refuse(ErrMalformed, "byte %d: "+format, append([]any{at}, args...)...)
}

func (p *parser) document() error {
	if strings.HasPrefix(p.s, "\uFEFF") {
		p.pos = len("\uFEFF")
	}
	if rest := p.s[p.pos:]; strings.HasPrefix(rest, "<?xml") && len(rest) > 5 && isSpace(rest[5]) {
		if err := p.declaration(); err != nil {
			return err
		}
	}
	p.skipSpace()
	if p.pos == len(p.s) {
		return p.fail(p.pos, "the document has no root element")
	}
	if p.s[p.pos] != '<' {
		return p.fail(p.pos, "%s before the root element", excerpt(firstRune(p.s[p.pos:])))
	}
	if err := p.markup(); err != nil {
		return err
	}
	if err := p.element(""); err != nil {
		return err
	}
	for len(p.open) > 0 {
		if err := p.content(); err != nil {
			return err
		}
	}
	p.skipSpace()
	if p.pos < len(p.s) {
		if p.s[p.pos] == '<' {
			if err := p.markup(); err != nil {
				return err
			}
		}
		return p.fail(p.pos, "only white space may follow the root element")
	}
	return nil
}

// content reads up to the next tag, and the tag.
func (p *parser) content() error {
	top := p.open[len(p.open)-1].node
	start := p.pos
	length := strings.IndexByte(p.s[start:], '<')
	if length < 0 {
		return p.fail(len(p.s), "the document ends inside element %s", excerpt(p.doc.nodes[top].name))
	}
	p.pos += length
	before := p.s[start:p.pos]
	if strings.HasPrefix(p.s[p.pos:], "</") {
		return p.endTag(top, before, start)
	}
	if err := p.markup(); err != nil {
		return err
	}
	before, err := p.blank(top, before, start)
	if err != nil {
		return err
	}
	return p.element(before)
}

// blank returns the white space next to a child element, with line ends
// normalized. It fails when there is other text.
func (p *parser) blank(parent int32, s string, at int) (string, error) {
	if s == "" {
		return "", nil
	}
	for i := range len(s) {
		if !isSpace(s[i]) {
			return "", p.fail(at+i, "element %s has text next to child elements; it may have one or the other", excerpt(p.doc.nodes[parent].name))
		}
	}
	p.doc.blanks = true
	return normalizeLines(s), nil
}

// markup refuses markup that is not a tag.
func (p *parser) markup() error {
	var what string
	switch rest := p.s[p.pos:]; {
	case strings.HasPrefix(rest, "<!--"):
		what = "comments"
	case strings.HasPrefix(rest, "<![CDATA["):
		what = "CDATA sections"
	case strings.HasPrefix(rest, "<!"):
		what = "document types and other declarations"
	case strings.HasPrefix(rest, "<?"):
		what = "processing instructions"
	default:
		return nil
	}
	return p.fail(p.pos, "%s are not accepted, only elements and text", what)
}

// element reads a start tag or an empty element.
func (p *parser) element(before string) error {
	start := p.pos
	p.pos++
	name, err := p.name("element")
	if err != nil {
		return err
	}
	if len(p.open) >= p.limits.Depth {
		return p.fail(start, "element %s is deeper than %d", excerpt(name), p.limits.Depth)
	}
	if err := p.another(start); err != nil {
		return err
	}
	i := int32(len(p.doc.nodes)) //nolint:gosec // Parse limits the number of nodes
	p.doc.nodes = append(p.doc.nodes, node{name: name, before: before, end: i + 1})
	p.open = append(p.open, openElement{i, len(p.scope)})
	if localName(name) == signatureName {
		p.doc.signatures = append(p.doc.signatures, i)
	}
	if p.pos < len(p.s) && p.s[p.pos] == '>' {
		p.pos++
		return p.resolve(i, start)
	}
	return p.startTag(i, start)
}

// startTag reads the rest of a start tag that has more than a name.
func (p *parser) startTag(i int32, start int) error {
	for attributes := 0; ; attributes++ {
		spaces := p.skipSpace()
		switch rest := p.s[p.pos:]; {
		case strings.HasPrefix(rest, ">"):
			p.pos++
			return p.resolve(i, start)
		case strings.HasPrefix(rest, "/>"):
			p.pos += 2
			err := p.resolve(i, start)
			p.end()
			return err
		case rest == "" || rest == "/":
			return p.fail(len(p.s), "the document ends inside the tag of element %s", excerpt(p.doc.nodes[i].name))
		case spaces == 0:
			return p.fail(p.pos, "%s in the name of an element, or no white space before an attribute", excerpt(firstRune(rest)))
		case attributes == maxAttributes:
			return p.fail(start, "element %s has more than %d attributes", excerpt(p.doc.nodes[i].name), maxAttributes)
		}
		if err := p.attribute(i); err != nil {
			return err
		}
	}
}

func (p *parser) endTag(top int32, before string, at int) error {
	tag := p.pos
	p.pos += 2
	n := &p.doc.nodes[top]
	if !strings.HasPrefix(p.s[p.pos:], n.name) {
		return p.fail(tag, "the end tag is not that of element %s", excerpt(n.name))
	}
	p.pos += len(n.name)
	if p.pos < len(p.s) && p.s[p.pos] != '>' && p.skipSpace() == 0 {
		return p.fail(tag, "the end tag is not that of element %s", excerpt(n.name))
	}
	if p.pos == len(p.s) || p.s[p.pos] != '>' {
		return p.fail(p.pos, "the end tag of element %s does not end with >", excerpt(n.name))
	}
	p.pos++
	var err error
	if int(top) == len(p.doc.nodes)-1 {
		n.text, err = p.text(before, at)
	} else {
		n.text, err = p.blank(top, before, at)
	}
	p.end()
	return err
}

// end ends the innermost element.
func (p *parser) end() {
	last := p.open[len(p.open)-1]
	p.doc.nodes[last.node].end = int32(len(p.doc.nodes)) //nolint:gosec // Parse limits the number of nodes
	p.scope = p.scope[:last.scope]
	p.open = p.open[:len(p.open)-1]
}

// another counts a node.
func (p *parser) another(at int) error {
	p.count++
	if p.count%yieldEvery == 0 {
		runtime.Gosched()
	}
	if p.count > p.limits.Nodes {
		return p.fail(at, "the document has more than %d elements and attributes", p.limits.Nodes)
	}
	return nil
}
