package xmlsig

import (
	"math"
	"strings"
	"unicode/utf8"
)

// Limits bound a document before and while it is read. Nodes are elements and
// attributes; the root has depth 1.
type Limits struct{ Bytes, Nodes, Depth int }

// SmallLimits are those of documents that hold a few fields: seeds,
// acknowledgements and approvals.
func SmallLimits() Limits { return Limits{Bytes: 256 << 10, Nodes: 2_000, Depth: 16} }

// InvoiceLimits are those of documents with many lines.
func InvoiceLimits() Limits { return Limits{Bytes: 8 << 20, Nodes: 64_000, Depth: 16} }

// maxAttributes is more than any element of a signature or any root has.
const maxAttributes = 16

const signatureName = "Signature"

// Parse reads a document, signed or not, and verifies nothing. It reads a small
// part of XML and refuses the rest, because two programs read the rest in two
// ways: no document type, comment, processing instruction, CDATA section or
// entity beyond the five predefined; no text beside elements; no prefix on a
// name; no attribute but namespace declarations on the root and those of a
// signature.
func Parse(raw []byte, limits Limits) (*Document, error) {
	if len(raw) > limits.Bytes {
		return nil, refuse(ErrMalformed, "it has %d bytes and may have %d", len(raw), limits.Bytes)
	}
	s := string(raw)
	if err := checkCharacters(s); err != nil {
		return nil, err
	}
	limits.Nodes = min(limits.Nodes, math.MaxInt32-1)
	// Most elements have two tags, so this is near the number of elements.
	likely := min(strings.Count(s, "<")/2+1, limits.Nodes)
	p := &parser{s: s, limits: limits, doc: &Document{nodes: make([]node, 0, likely)}}
	if err := p.document(); err != nil {
		return nil, err
	}
	return p.doc, nil
}

// checkCharacters refuses what is not UTF-8 or not a character of XML 1.0.
func checkCharacters(s string) error {
	if !utf8.ValidString(s) {
		for i, r := range s {
			if r == utf8.RuneError {
				if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
					return refuse(ErrMalformed, "byte %d: 0x%02x is not UTF-8, the one encoding that is read", i, s[i])
				}
			}
		}
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20 && c != '\n' && c != '\r' && c != '\t':
			return refuse(ErrMalformed, "byte %d: control character 0x%02x, which XML forbids", i, c)
		case c == 0xef && (s[i:i+3] == "\uFFFE" || s[i:i+3] == "\uFFFF"):
			return refuse(ErrMalformed, "byte %d: U+FFFE or U+FFFF, which XML forbids", i)
		}
	}
	return nil
}

type parser struct {
	s         string
	pos       int
	limits    Limits
	doc       *Document
	count     int     // of nodes
	open      []int32 // the elements that have started and not ended
	signature int     // how many were open when the outermost signature started, and it itself; or 0
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
		return p.fail(p.pos, "the document is empty; a root element is expected")
	}
	if p.s[p.pos] != '<' {
		return p.fail(p.pos, "%s before the root element", excerpt(p.s[p.pos:min(p.pos+1, len(p.s))]))
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
		return p.fail(p.pos, "something follows the end of the root element; only white space may")
	}
	return nil
}

// content reads up to the next tag, and the tag.
func (p *parser) content() error {
	top := p.open[len(p.open)-1]
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

// blank takes what stands between two tags of which one is a child's.
func (p *parser) blank(parent int32, s string, at int) (string, error) {
	if s == "" {
		return "", nil
	}
	for i := range len(s) {
		if !isSpace(s[i]) {
			return "", p.fail(at+i, "text beside elements in element %s, which may hold one or the other", excerpt(p.doc.nodes[parent].name))
		}
	}
	p.doc.blanks = true
	return normalizeLines(s), nil
}

// markup refuses what starts with < and is no tag.
func (p *parser) markup() error {
	var what string
	switch rest := p.s[p.pos:]; {
	case strings.HasPrefix(rest, "<!--"):
		what = "a comment"
	case strings.HasPrefix(rest, "<![CDATA["):
		what = "a CDATA section"
	case strings.HasPrefix(rest, "<!"):
		what = "a document type or other declaration"
	case strings.HasPrefix(rest, "<?"):
		what = "a processing instruction"
	default:
		return nil
	}
	return p.fail(p.pos, "%s; only elements and text are accepted", what)
}

// element reads a start tag or an empty element.
func (p *parser) element(before string) error {
	start := p.pos
	p.pos++
	name, err := p.name()
	if err != nil {
		return err
	}
	if len(p.open) >= p.limits.Depth {
		return p.fail(start, "element %s is deeper than %d", excerpt(name), p.limits.Depth)
	}
	if err := p.another(start); err != nil {
		return err
	}
	i := int32(len(p.doc.nodes)) //nolint:gosec // Parse keeps the number of nodes below
	p.doc.nodes = append(p.doc.nodes, node{name: name, before: before, end: i + 1})
	p.open = append(p.open, i)
	if name == signatureName {
		p.doc.signatures = append(p.doc.signatures, i)
		if p.signature == 0 {
			p.signature = len(p.open)
		}
	}
	if p.pos < len(p.s) && p.s[p.pos] == '>' {
		p.pos++
		return nil
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
			return nil
		case strings.HasPrefix(rest, "/>"):
			p.pos += 2
			p.end()
			return nil
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
		return p.fail(tag, "an end tag that is not that of element %s", excerpt(n.name))
	}
	p.pos += len(n.name)
	if p.pos < len(p.s) && p.s[p.pos] != '>' && p.skipSpace() == 0 {
		return p.fail(tag, "an end tag that is not that of element %s", excerpt(n.name))
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
	last := len(p.open) - 1
	p.doc.nodes[p.open[last]].end = int32(len(p.doc.nodes)) //nolint:gosec // Parse keeps the number of nodes below
	if p.signature == len(p.open) {
		p.signature = 0
	}
	p.open = p.open[:last]
}

// another counts a node.
func (p *parser) another(at int) error {
	p.count++
	if p.count > p.limits.Nodes {
		return p.fail(at, "more than %d elements and attributes", p.limits.Nodes)
	}
	return nil
}
