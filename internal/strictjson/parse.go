package strictjson

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// bytesPerNode estimates how many bytes of text a node takes. An invoice has one
// node for every ten to fifteen bytes. A lower estimate costs memory, a higher one
// a second allocation.
const bytesPerNode = 10

// Parse parses a body of exactly one JSON value in UTF-8. It refuses a byte order
// mark, a repeated member name at any depth, a lone surrogate, text after the
// value, and nesting deeper than MaxDepth. Its error is a *SyntaxError. The body
// must not change while the document is used.
func Parse(body []byte) (*Document, error) {
	switch {
	case len(body) > math.MaxInt32:
		return nil, &SyntaxError{Reason: "the body is larger than 2 GiB"}
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return nil, &SyntaxError{Reason: "the body starts with a byte order mark; send UTF-8 without one"}
	}
	p := parser{body: body, slash: -1, nodes: make([]node, 0, len(body)/bytesPerNode+4)}
	if err := p.run(); err != nil {
		return nil, err
	}
	return &Document{body: body, text: string(body), nodes: p.nodes}, nil
}

// A parser lets jsontext check the syntax and records the offsets of each token.
type parser struct {
	body  []byte
	nodes []node
	open  [MaxDepth]uint32 // the arrays and objects that are not yet closed
	depth int
	slash int // the first backslash at or after the last argument of escapes
}

func (p *parser) run() error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(p.body))
	for end := 0; ; {
		if _, err := dec.ReadToken(); err != nil {
			return p.finish(err)
		}
		start := skipBetween(p.body, end)
		end = int(dec.InputOffset())
		if p.depth == 0 && len(p.nodes) > 0 {
			return &SyntaxError{Offset: int64(start), Reason: "the body has more text after the value; send exactly one JSON value"}
		}
		switch p.body[start] {
		case ']', '}':
			p.close(end)
		case '[', '{':
			if p.depth == MaxDepth {
				return &SyntaxError{Offset: int64(start), Reason: "arrays and objects are nested deeper than 16 levels"}
			}
			p.add(start, end)
			p.open[p.depth] = uint32(len(p.nodes) - 1)
			p.depth++
		case '"':
			p.add(start, end)
			if p.escapes(start, end) {
				p.nodes[len(p.nodes)-1].count = 1
			}
		default:
			p.add(start, end)
		}
	}
}

// escapes reports whether there is a backslash between two offsets. Most bodies
// have few backslashes, so one search serves many strings.
func (p *parser) escapes(start, end int) bool {
	if p.slash < start {
		i := bytes.IndexByte(p.body[start:], '\\')
		if i < 0 {
			i = len(p.body)
		}
		p.slash = start + i
	}
	return p.slash < end
}

// add appends a node and counts it in its array or object.
func (p *parser) add(start, end int) {
	if p.depth > 0 {
		p.nodes[p.open[p.depth-1]].count++
	}
	next := uint32(len(p.nodes) + 1)
	p.nodes = append(p.nodes, node{start: uint32(start), end: uint32(end), next: next})
}

// close ends the innermost array or object.
func (p *parser) close(end int) {
	p.depth--
	n := &p.nodes[p.open[p.depth]]
	n.end, n.next = uint32(end), uint32(len(p.nodes))
	if p.body[n.start] == '{' {
		n.count /= 2 // names and values were counted
	}
}

// finish returns the result of Parse for the last error of the decoder.
func (p *parser) finish(err error) error {
	if !errors.Is(err, io.EOF) {
		return newSyntaxError(err, len(p.body))
	}
	if len(p.nodes) == 0 {
		return &SyntaxError{Offset: int64(len(p.body)), Reason: "the body is empty; send one JSON value"}
	}
	return nil
}

// skipBetween returns the offset of the first byte at or after i that begins a
// token. The decoder reports only the end of tokens, and between two tokens it
// accepts only these characters.
func skipBetween(body []byte, i int) int {
	for i < len(body) {
		switch body[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		default:
			return i
		}
	}
	return i
}
