package dgii

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// A value is one JSON value as the authority writes it: the names of members
// are folded, since it spells them in more than one way.
type value struct {
	kind    kind
	text    string // of a string, a number or a boolean
	list    []value
	members map[string]value
}

type kind byte

const (
	kindNone kind = iota
	kindNull
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// What an answer may be beyond its size, before it is no answer.
const (
	maxDepth = 16
	maxNodes = 50_000
)

var errNotJSON = errors.New("it is not JSON as it is accepted here")

// parseValue reads one JSON text. The authority's services are not strict and
// neither is this, but for one thing: a member that is given twice with two
// values makes the whole text worthless.
func parseValue(body []byte) (value, error) {
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff"))
	if !json.Valid(body) {
		return value{}, errNotJSON
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	r := valueReader{dec: dec, left: maxNodes}
	return r.next(maxDepth)
}

type valueReader struct {
	dec  *json.Decoder
	left int
}

func (r *valueReader) next(depth int) (value, error) {
	if r.left--; r.left < 0 || depth < 0 {
		return value{}, errNotJSON
	}
	token, err := r.dec.Token()
	if err != nil {
		return value{}, errNotJSON
	}
	switch t := token.(type) {
	case nil:
		return value{kind: kindNull}, nil
	case bool:
		if t {
			return value{kind: kindBool, text: "true"}, nil
		}
		return value{kind: kindBool, text: "false"}, nil
	case json.Number:
		return value{kind: kindNumber, text: t.String()}, nil
	case string:
		return value{kind: kindString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return r.array(depth)
		}
		return r.object(depth)
	}
	return value{}, errNotJSON
}

func (r *valueReader) array(depth int) (value, error) {
	v := value{kind: kindArray}
	for r.dec.More() {
		item, err := r.next(depth - 1)
		if err != nil {
			return value{}, err
		}
		v.list = append(v.list, item)
	}
	_, err := r.dec.Token()
	return v, err
}

func (r *valueReader) object(depth int) (value, error) {
	v := value{kind: kindObject, members: make(map[string]value)}
	for r.dec.More() {
		name, err := r.next(depth)
		if err != nil {
			return value{}, err
		}
		member, err := r.next(depth - 1)
		if err != nil {
			return value{}, err
		}
		key := folded(name.text)
		switch before := v.members[key]; {
		case before.kind == kindNone || before.kind == kindNull:
			v.members[key] = member
		case member.kind == kindNull:
		case member.kind != before.kind || member.text != before.text || member.kind == kindArray || member.kind == kindObject:
			return value{}, errNotJSON
		}
	}
	_, err := r.dec.Token()
	return v, err
}

// of returns the first member of these names that has a value.
func (v value) of(names ...string) value {
	for _, name := range names {
		if m := v.members[name]; m.kind > kindNull {
			return m
		}
	}
	return value{}
}

// has tells whether a member is there, be it null.
func (v value) has(name string) bool { return v.members[name].kind != kindNone }

// scalar is the text of a string or a number, without space around it.
func (v value) scalar() string {
	if v.kind == kindString || v.kind == kindNumber {
		return strings.TrimSpace(v.text)
	}
	return ""
}
