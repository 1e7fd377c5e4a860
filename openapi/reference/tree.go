package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// tree is a value of the OpenAPI document. Unlike a Go map, it keeps the order of
// members, in which the page shows them. The methods accept a nil tree, which stands
// for an absent value.
type tree struct {
	names   []string // of the members, in order
	members map[string]*tree
	items   []*tree
	scalar  any // string, json.Number, bool or nil
	object  bool
	array   bool
}

// parse reads a JSON text. It fails when the text is not one JSON value.
func parse(text []byte) (*tree, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	root, err := parseValue(decoder)
	if err != nil {
		return nil, fmt.Errorf("reference: parse the document: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("reference: the document has more than one value: %w", err)
	}
	return root, nil
}

func parseValue(decoder *json.Decoder) (*tree, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		t := &tree{object: true, members: map[string]*tree{}}
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			if t.members[name.(string)], err = parseValue(decoder); err != nil {
				return nil, err
			}
			t.names = append(t.names, name.(string))
		}
		_, err = decoder.Token()
		return t, err
	case json.Delim('['):
		t := &tree{array: true}
		for decoder.More() {
			item, err := parseValue(decoder)
			if err != nil {
				return nil, err
			}
			t.items = append(t.items, item)
		}
		_, err = decoder.Token()
		return t, err
	}
	return &tree{scalar: token}, nil
}

// get returns the member at a path, or nil.
func (t *tree) get(path ...string) *tree {
	for _, name := range path {
		if t == nil {
			return nil
		}
		t = t.members[name]
	}
	return t
}

// text returns a scalar as text, and "" for anything else.
func (t *tree) text() string {
	if t == nil || t.scalar == nil {
		return ""
	}
	return fmt.Sprint(t.scalar)
}

// texts returns the items of an array of scalars, or one scalar, as texts.
func (t *tree) texts() []string {
	if t == nil {
		return nil
	}
	if !t.array {
		return []string{t.text()}
	}
	list := make([]string, len(t.items))
	for i, item := range t.items {
		list[i] = item.text()
		if item.scalar == nil {
			list[i] = "null"
		}
	}
	return list
}

// each calls fn for each member, in order.
func (t *tree) each(fn func(name string, member *tree)) {
	if t == nil {
		return
	}
	for _, name := range t.names {
		fn(name, t.members[name])
	}
}

// set adds or replaces a member.
func (t *tree) set(name string, member *tree) {
	if _, ok := t.members[name]; !ok {
		t.names = append(t.names, name)
	}
	t.members[name] = member
}

// resolve follows references. Members next to a reference replace those of its target.
func (t *tree) resolve(root *tree) *tree {
	ref := t.get("$ref").text()
	if ref == "" {
		return t
	}
	target := root.get(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...).resolve(root)
	if len(t.names) == 1 || target == nil {
		return target
	}
	merged := &tree{object: true, members: map[string]*tree{}}
	target.each(merged.set)
	t.each(func(name string, member *tree) {
		if name != "$ref" {
			merged.set(name, member)
		}
	})
	return merged
}

// indented returns the value as JSON text on several lines.
func (t *tree) indented() string {
	var out strings.Builder
	t.write(&out, "")
	return out.String()
}

func (t *tree) write(out *strings.Builder, indent string) {
	more := indent + "  "
	switch {
	case t.object:
		out.WriteString("{")
		for i, name := range t.names {
			separate(out, i, more)
			writeScalar(out, name)
			out.WriteString(": ")
			t.members[name].write(out, more)
		}
		closeList(out, len(t.names), indent, "}")
	case t.array:
		out.WriteString("[")
		for i, item := range t.items {
			separate(out, i, more)
			item.write(out, more)
		}
		closeList(out, len(t.items), indent, "]")
	default:
		writeScalar(out, t.scalar)
	}
}

func separate(out *strings.Builder, i int, indent string) {
	if i > 0 {
		out.WriteString(",")
	}
	out.WriteString("\n" + indent)
}

func closeList(out *strings.Builder, n int, indent, end string) {
	if n > 0 {
		out.WriteString("\n" + indent)
	}
	out.WriteString(end)
}

func writeScalar(out *strings.Builder, v any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // a value that was read from JSON can be written
	out.WriteString(strings.TrimSuffix(text.String(), "\n"))
}
