package dgii

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// A jsonValue is one JSON value. The names of members are normalised, because the
// authority spells them in more than one way.
type jsonValue struct {
	kind    kind
	text    string // of a string, a number or a boolean
	items   []jsonValue
	members map[string]jsonValue
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

// The limits of a JSON text besides its size.
const (
	maxDepth = 16
	maxNodes = 50_000
)

var errNotJSON = errors.New("not acceptable JSON")

// parseJSON reads one JSON text. It is not strict, because the authority's
// services are not. But it refuses a text that has the same member twice with
// different values: it is not known which one counts.
func parseJSON(body []byte) (jsonValue, error) {
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff"))
	if !json.Valid(body) {
		return jsonValue{}, errNotJSON
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	r := jsonReader{dec: dec, left: maxNodes}
	return r.next(maxDepth)
}

type jsonReader struct {
	dec  *json.Decoder
	left int
}

func (r *jsonReader) next(depth int) (jsonValue, error) {
	if r.left--; r.left < 0 || depth < 0 {
		return jsonValue{}, errNotJSON
	}
	token, err := r.dec.Token()
	if err != nil {
		return jsonValue{}, errNotJSON
	}
	switch t := token.(type) {
	case nil:
		return jsonValue{kind: kindNull}, nil
	case bool:
		if t {
			return jsonValue{kind: kindBool, text: "true"}, nil
		}
		return jsonValue{kind: kindBool, text: "false"}, nil
	case json.Number:
		return jsonValue{kind: kindNumber, text: t.String()}, nil
	case string:
		return jsonValue{kind: kindString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return r.array(depth)
		}
		return r.object(depth)
	}
	return jsonValue{}, errNotJSON
}

func (r *jsonReader) array(depth int) (jsonValue, error) {
	v := jsonValue{kind: kindArray}
	for r.dec.More() {
		item, err := r.next(depth - 1)
		if err != nil {
			return jsonValue{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := r.dec.Token()
	return v, err
}

func (r *jsonReader) object(depth int) (jsonValue, error) {
	v := jsonValue{kind: kindObject, members: make(map[string]jsonValue)}
	for r.dec.More() {
		name, err := r.next(depth)
		if err != nil {
			return jsonValue{}, err
		}
		member, err := r.next(depth - 1)
		if err != nil {
			return jsonValue{}, err
		}
		key := normalizeText(name.text)
		switch before := v.members[key]; {
		case before.kind == kindNone || before.kind == kindNull:
			v.members[key] = member
		case member.kind == kindNull:
		case member.kind != before.kind || member.text != before.text || member.kind == kindArray || member.kind == kindObject:
			return jsonValue{}, errNotJSON
		}
	}
	_, err := r.dec.Token()
	return v, err
}

// member returns the first member with one of the names that is not null.
func (v jsonValue) member(names ...string) jsonValue {
	for _, name := range names {
		if m := v.members[name]; m.kind > kindNull {
			return m
		}
	}
	return jsonValue{}
}

// has reports whether a member exists, even if it is null.
func (v jsonValue) has(name string) bool { return v.members[name].kind != kindNone }

// scalar returns the text of a string or a number without surrounding space, and
// "" for other values.
func (v jsonValue) scalar() string {
	if v.kind == kindString || v.kind == kindNumber {
		return strings.TrimSpace(v.text)
	}
	return ""
}
