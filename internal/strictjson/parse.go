package strictjson

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// bytesPerNode estimates how much text a node takes. An invoice has one node
// for every ten to fifteen bytes; too low a figure only costs memory, too high
// a one a second allocation.
const bytesPerNode = 10

// Parse reads a body that must be exactly one JSON text in UTF-8: no byte order
// mark, no repeated member name at any depth, no lone surrogate, nothing after
// the value, nothing nested deeper than MaxDepth. An error is a *SyntaxError.
// The body must not change while the document is used.
func Parse(body []byte) (*Document, error) {
	switch {
	case len(body) > math.MaxInt32:
		return nil, &SyntaxError{Reason: "the text is larger than 2 GiB"}
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return nil, &SyntaxError{Reason: "a byte order mark stands before the text; send plain UTF-8"}
	}
	p := parser{body: body, slash: -1, nodes: make([]node, 0, len(body)/bytesPerNode+4)}
	if err := p.run(); err != nil {
		return nil, err
	}
	return &Document{body: body, text: string(body), nodes: p.nodes}, nil
}

// A parser lets jsontext judge the grammar and notes where each token stands.
type parser struct {
	body  []byte
	nodes []node
	open  [MaxDepth]uint32 // the arrays and objects that are not yet closed
	depth int
	slash int // the first backslash at or after the token last asked about
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
			return &SyntaxError{Offset: int64(start), Reason: "there is more text after the value; send exactly one JSON value"}
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

// escapes reports whether a backslash stands between two offsets. Most bodies have
// few or none, so that one search serves many strings.
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

// add appends a node and counts it in the array or object that holds it.
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
		n.count /= 2 // names and values were counted alike
	}
}

// finish turns the decoder's last answer into ours.
func (p *parser) finish(err error) error {
	if !errors.Is(err, io.EOF) {
		return newSyntaxError(err, len(p.body))
	}
	if len(p.nodes) == 0 {
		return &SyntaxError{Offset: int64(len(p.body)), Reason: "the text is empty; send one JSON value"}
	}
	return nil
}

// skipBetween returns the offset of the first byte at or after i that begins a
// token. The decoder reports only where tokens end; between two of them it has
// let pass nothing but these.
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
