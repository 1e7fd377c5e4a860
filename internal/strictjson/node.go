package strictjson

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Kind is one of the six kinds of JSON values.
type Kind uint8

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the kind's name as it is used in messages.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return "unknown"
}

// Name returns the kind with its article, for messages.
func (k Kind) Name() lang.Message {
	switch k {
	case Null:
		return lang.Literal("null")
	case Bool:
		return lang.Messagef("a boolean", "un booleano")
	case Number:
		return lang.Messagef("a number", "un número")
	case String:
		return lang.Messagef("a string", "un texto entre comillas")
	case Array:
		return lang.Messagef("an array", "una lista")
	case Object:
		return lang.Messagef("an object", "un objeto")
	}
	return lang.Literal(k.String())
}

// A Node is one value of a document. It is small, is passed by value and is valid
// as long as its document. The methods of the zero Node panic.
type Node struct {
	doc *Document
	at  uint32
}

// Kind returns the kind of the value.
func (n Node) Kind() Kind {
	switch n.doc.body[n.doc.nodes[n.at].start] {
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	}
	return Number
}

// Text returns the content of a string, without escapes. For every other kind it
// returns the text as it was sent.
func (n Node) Text() string {
	if n.Kind() != String {
		v := n.doc.nodes[n.at]
		return n.doc.text[v.start:v.end]
	}
	return n.doc.content(n.at)
}

// Len returns the number of elements of an array or of members of an object, and
// zero for every other kind.
func (n Node) Len() int {
	if k := n.Kind(); k != Array && k != Object {
		return 0
	}
	return int(n.doc.nodes[n.at].count)
}

// Items yields the elements of an array in order, with their indexes. It yields
// nothing for other kinds.
func (n Node) Items() iter.Seq2[int, Node] {
	return func(yield func(int, Node) bool) {
		if n.Kind() != Array {
			return
		}
		end := n.doc.nodes[n.at].next
		for i, at := 0, n.at+1; at < end; i++ {
			if !yield(i, Node{n.doc, at}) {
				return
			}
			at = n.doc.nodes[at].next
		}
	}
}

// Members yields the members of an object in the order of the text, with their
// names without escapes. It yields nothing for other kinds.
func (n Node) Members() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		if n.Kind() != Object {
			return
		}
		end := n.doc.nodes[n.at].next
		for at := n.at + 1; at < end; {
			if !yield(n.doc.content(at), Node{n.doc, at + 1}) {
				return
			}
			at = n.doc.nodes[at+1].next
		}
	}
}

// content returns the unescaped content of the string at an index.
func (d *Document) content(at uint32) string {
	v := d.nodes[at]
	if v.count == 0 {
		return d.text[v.start+1 : v.end-1]
	}
	// The decoder has accepted the string, so AppendUnquote does not fail.
	b, _ := jsontext.AppendUnquote(nil, d.body[v.start:v.end])
	return string(b)
}
