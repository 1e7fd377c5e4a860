package strictjson

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// bytesPerNode estimates how many bytes of text a node takes. An invoice has one
// node for every ten to fifteen bytes. A lower estimate costs memory, a higher one
// a second allocation. A body of 1 MiB gets room for maxNodes at once.
const bytesPerNode = 8

// yieldEvery is how many tokens Parse reads before it lets other goroutines run. A
// large body would otherwise delay small ones for milliseconds.
const yieldEvery = 2048

// errManyMembers ends the first reading of a body with an object of more than
// MaxMembers members.
var errManyMembers = errors.New("an object has too many members")

// Parse parses a body of exactly one JSON value in UTF-8. It refuses a byte order
// mark, a repeated member name at any depth, a lone surrogate, text after the
// value, and nesting deeper than MaxDepth. Its error is a *SyntaxError. The body
// must not change while the document is used.
//
// The memory that Parse needs is bounded by a small multiple of the body: of a body
// with more values than MaxMembers, MaxItems and maxNodes allow it checks the whole
// syntax, but keeps only the first values. Document.Truncated reports this.
func Parse(body []byte) (*Document, error) {
	switch {
	case len(body) > math.MaxInt32:
		return nil, &SyntaxError{Reason: lang.Messagef("the body is larger than 2 GiB", "el cuerpo es mayor de 2 GiB")}
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return nil, &SyntaxError{Reason: lang.Messagef(
			"the body starts with a byte order mark; send UTF-8 without one",
			"el cuerpo comienza con una marca de orden de bytes (BOM); envíe UTF-8 sin ella")}
	}
	p := parser{body: body, nodes: make([]node, 0, min(len(body)/bytesPerNode+4, maxNodes))}
	err := p.run()
	if errors.Is(err, errManyMembers) {
		// The decoder keeps all names of an object to find repeated ones. Such a
		// body is refused in any case, so the second reading omits this check.
		err = p.run(jsontext.AllowDuplicateNames(true))
	}
	if err != nil {
		return nil, err
	}
	return &Document{body: body, text: string(body), nodes: p.nodes, truncated: p.truncated}, nil
}

// A parser lets jsontext check the syntax and records the offsets of each token.
type parser struct {
	body  []byte
	nodes []node
	open  [MaxDepth]openValue // the arrays and objects that are not yet closed
	depth int
	slash int // the first backslash at or after the last argument of escapes

	anyNames  bool // repeated names are accepted
	truncated bool // some values have no node
	skipped   int  // open arrays and objects without a node
}

// An openValue is an array or object that is not yet closed.
type openValue struct {
	at   uint32 // index of its node
	full bool   // its further values get no nodes
}

// run reads the body from its beginning.
func (p *parser) run(options ...jsontext.Options) error {
	*p = parser{body: p.body, slash: -1, nodes: p.nodes[:0], anyNames: len(options) > 0}
	dec := jsontext.NewDecoder(bytes.NewBuffer(p.body), options...)
	for end, count := 0, 1; ; count++ {
		if count%yieldEvery == 0 {
			runtime.Gosched()
		}
		if _, err := dec.ReadToken(); err != nil {
			return p.finish(err)
		}
		start := skipBetween(p.body, end)
		end = int(dec.InputOffset())
		if p.depth == 0 && len(p.nodes) > 0 {
			return &SyntaxError{Offset: int64(start), Reason: lang.Messagef(
				"the body has more text after the value; send exactly one JSON value",
				"el cuerpo tiene más texto después del valor; envíe un solo valor de JSON")}
		}
		if err := p.token(start, end); err != nil {
			return err
		}
	}
}

// token records the token between two offsets.
func (p *parser) token(start, end int) error {
	first := p.body[start]
	opens, closes := first == '[' || first == '{', first == ']' || first == '}'
	if opens && p.depth+p.skipped == MaxDepth {
		return &SyntaxError{Offset: int64(start), Reason: lang.Messagef(
			"arrays and objects are nested deeper than 16 levels", "las listas y los objetos tienen más de 16 niveles")}
	}
	switch {
	case p.skipped > 0 && closes:
		p.skipped--
	case p.skipped > 0 && opens:
		p.skipped++
	case p.skipped > 0:
	case closes:
		p.close(end)
	case p.full():
		if first == '"' && !p.anyNames && p.inObject() {
			return errManyMembers
		}
		p.truncated = true
		p.nodes[p.open[p.depth-1].at].count++
		if opens {
			p.skipped = 1
		}
	default:
		p.add(start, end)
		if opens {
			p.open[p.depth] = openValue{at: uint32(len(p.nodes) - 1)}
			p.depth++
		} else if first == '"' && p.escapes(start, end) {
			p.nodes[len(p.nodes)-1].count = 1
		}
	}
	return nil
}

// full reports whether the next value of the innermost array or object gets no
// node. The value of a member has a node when its name has one.
func (p *parser) full() bool {
	if p.depth == 0 {
		return false
	}
	o := &p.open[p.depth-1]
	if o.full {
		return true
	}
	count := p.nodes[o.at].count
	if p.inObject() {
		o.full = count%2 == 0 && (count == 2*MaxMembers || len(p.nodes) >= maxNodes-1)
	} else {
		o.full = count == MaxItems || len(p.nodes) >= maxNodes
	}
	return o.full
}

// inObject reports whether the innermost open value is an object.
func (p *parser) inObject() bool { return p.body[p.nodes[p.open[p.depth-1].at].start] == '{' }

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
		p.nodes[p.open[p.depth-1].at].count++
	}
	next := uint32(len(p.nodes) + 1)
	p.nodes = append(p.nodes, node{start: uint32(start), end: uint32(end), next: next})
}

// close ends the innermost array or object.
func (p *parser) close(end int) {
	p.depth--
	n := &p.nodes[p.open[p.depth].at]
	n.end, n.next = uint32(end), uint32(len(p.nodes))
	if p.body[n.start] == '{' {
		n.count /= 2 // names and values were counted
	}
}

// finish returns the result of Parse for the last error of the decoder.
func (p *parser) finish(err error) error {
	if !errors.Is(err, io.EOF) {
		return newSyntaxError(err, p.body)
	}
	if len(p.nodes) == 0 {
		return &SyntaxError{Offset: int64(len(p.body)), Reason: lang.Messagef(
			"the body is empty; send one JSON value", "el cuerpo está vacío; envíe un valor de JSON")}
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
