package strictjson

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxExactDigits is the length, sign included, up to which an integer is always
// its own canonical form: a float64 represents every integer below 2^53 exactly.
const maxExactDigits = 15

// Canonical returns the canonical form of the document (RFC 8785): members sorted
// by UTF-16 code units, no insignificant white space, strings minimally escaped,
// numbers in their shortest form. Two texts of the same content have the same
// canonical form.
func (d *Document) Canonical() []byte {
	c := canonicalizer{doc: d, out: make([]byte, 0, len(d.body))}
	c.value(0)
	return c.out
}

type canonicalizer struct {
	doc     *Document
	out     []byte
	members []member // a stack of the sorted members of each open object
}

func (c *canonicalizer) value(at uint32) {
	v := &c.doc.nodes[at]
	switch c.doc.body[v.start] {
	case '{':
		c.object(at)
	case '[':
		c.array(at)
	case '"':
		c.str(at)
	case 'n', 't', 'f':
		c.out = append(c.out, c.doc.body[v.start:v.end]...)
	default:
		c.number(c.doc.text[v.start:v.end])
	}
}

func (c *canonicalizer) array(at uint32) {
	c.out = append(c.out, '[')
	end := c.doc.nodes[at].next
	for i := at + 1; i < end; i = c.doc.nodes[i].next {
		if i > at+1 {
			c.out = append(c.out, ',')
		}
		c.value(i)
	}
	c.out = append(c.out, ']')
}

func (c *canonicalizer) object(at uint32) {
	base := len(c.members)
	end := c.doc.nodes[at].next
	for i := at + 1; i < end; i = c.doc.nodes[i+1].next {
		c.members = append(c.members, member{sortKey(c.doc.content(i)), i})
	}
	c.doc.sortMembers(c.members[base:])

	c.out = append(c.out, '{')
	for i := base; i < len(c.members); i++ {
		if i > base {
			c.out = append(c.out, ',')
		}
		name := c.members[i].at // read before value appends to the stack
		c.str(name)
		c.out = append(c.out, ':')
		c.value(name + 1)
	}
	c.out = append(c.out, '}')
	c.members = c.members[:base]
}

// str appends a string. One without escapes is already in its shortest form.
func (c *canonicalizer) str(at uint32) {
	v := c.doc.nodes[at]
	if v.count == 0 {
		c.out = append(c.out, c.doc.body[v.start:v.end]...)
		return
	}
	out, err := jsontext.AppendQuote(c.out, c.doc.content(at))
	if err != nil {
		// Not reachable, because the decoder has accepted the string. The
		// string as it was sent is then the best answer.
		out = append(c.out, c.doc.body[v.start:v.end]...)
	}
	c.out = out
}

// number appends a number as ECMAScript prints it. As in jsontext, a number that
// is too large for a float64 becomes the largest float64.
func (c *canonicalizer) number(s string) {
	if len(s) <= maxExactDigits && s != "-0" && isInteger(s) {
		c.out = append(c.out, s...)
		return
	}
	f, _ := strconv.ParseFloat(s, 64) // the syntax is valid, and a range error returns ±Inf
	switch {
	case f == 0:
		f = 0 // without the sign
	case math.IsInf(f, 1):
		f = math.MaxFloat64
	case math.IsInf(f, -1):
		f = -math.MaxFloat64
	}
	c.out = jsontext.AppendFloat(c.out, f, 64)
}

func isInteger(s string) bool {
	for i := range len(s) {
		if c := s[i]; c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}
