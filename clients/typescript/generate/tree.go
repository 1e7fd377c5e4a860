package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// object is a JSON object with its members in the order of the document.
type object struct {
	names  []string
	values map[string]any
}

// parse reads a JSON text. Objects become object, arrays []any.
func parse(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := readValue(decoder)
	if err != nil {
		return object{}, err
	}
	root, ok := value.(object)
	if !ok {
		return object{}, fmt.Errorf("the document is no object")
	}
	return root, nil
}

func readValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := object{values: map[string]any{}}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := readValue(d)
			if err != nil {
				return nil, err
			}
			text := fmt.Sprint(name)
			o.names = append(o.names, text)
			o.values[text] = value
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := readValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := d.Token()
		return list, err
	default:
		return token, nil
	}
}

// has reports whether the object has a member.
func (o object) has(name string) bool {
	_, ok := o.values[name]
	return ok
}

// at returns the object at a path of names, which is empty when it does not exist.
func (o object) at(path ...string) object {
	for _, name := range path {
		o, _ = o.values[name].(object)
	}
	return o
}

// text returns a member that is a string.
func (o object) text(name string) string {
	text, _ := o.values[name].(string)
	return text
}

// list returns a member that is an array.
func (o object) list(name string) []any {
	list, _ := o.values[name].([]any)
	return list
}

// texts returns a member that is one string or an array of strings.
func (o object) texts(name string) []string {
	if text := o.text(name); text != "" {
		return []string{text}
	}
	var all []string
	for _, item := range o.list(name) {
		all = append(all, fmt.Sprint(item))
	}
	return all
}
