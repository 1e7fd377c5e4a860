package reference

import (
	"html/template"
	"slices"
	"strings"
)

// field is a parameter, a header or a member of a body, as the page shows it.
type field struct {
	Name     string
	In       string // "path", "query" or "header" of a parameter
	Type     string
	Required bool
	Limits   []string
	Values   []string // the values that are allowed
	Open     bool     // values may be added
	Default  string
	Text     template.HTML
	Members  []field // of an object, or of the items of an array
	Choices  []choice
	Example  string // of a parameter
}

// choice is one of several forms of a value.
type choice struct {
	Name    string
	Members []field
}

// maxDepth is deeper than any schema of the document nests.
const maxDepth = 8

// parameter returns a parameter of an operation.
func (b *builder) parameter(p *tree) field {
	f := b.schema(p.get("name").text(), p.get("schema"), 0)
	f.In, f.Required = p.get("in").text(), p.get("required").text() == "true"
	if text := p.get("description").text(); text != "" {
		f.Text = b.md.block(text)
	}
	f.Example = p.get("example").text()
	if f.Example == "" {
		f.Example = f.Default
	}
	return f
}

// members returns the members of the object that a schema describes.
func (b *builder) members(schema *tree, depth int) []field {
	schema = b.flat(schema)
	if depth > maxDepth {
		return nil
	}
	required := schema.get("required").texts()
	var list []field
	schema.get("properties").each(func(name string, member *tree) {
		f := b.schema(name, member, depth+1)
		f.Required = slices.Contains(required, name)
		list = append(list, f)
	})
	return list
}

// schema returns a field with the type, the limits and the meaning of a schema.
func (b *builder) schema(name string, schema *tree, depth int) field {
	s := b.flat(schema)
	f := field{Name: name, Text: b.md.line(s.get("description").text()), Default: s.get("default").text()}
	kinds := s.get("type").texts()
	if parts := append(b.parts(s, "oneOf"), b.parts(s, "anyOf")...); len(parts) > 0 {
		return b.union(f, parts, depth)
	}
	item := s.get("items").resolve(b.root)
	f.Values, f.Open = b.values(s)
	f.Limits = b.limits(s)
	switch {
	case slices.Contains(kinds, "array"):
		of := b.schema("", item, depth)
		f.Type = b.words["Array"] + " " + of.Type
		f.Members, f.Choices = of.Members, of.Choices
		f.Values, f.Open = of.Values, of.Open
		f.Limits = append(f.Limits, of.Limits...)
		return f
	case len(kinds) == 0 && s.get("properties") != nil:
		kinds = []string{"object"}
	}
	f.Type = strings.Join(kinds, " "+b.words["Or"]+" ")
	if format := s.get("format").text(); format != "" {
		f.Type = strings.Replace(f.Type, "string", format, 1)
	}
	if slices.Contains(kinds, "object") {
		f.Members = b.members(s, depth)
	}
	return f
}

// union returns a value with several forms. A form that is null only adds to the type.
func (b *builder) union(f field, parts []*tree, depth int) field {
	var types []string
	for _, part := range parts {
		of := b.schema("", part, depth)
		if !slices.Contains(types, of.Type) {
			types = append(types, of.Type)
		}
		if of.Type == "null" {
			continue
		}
		f.Limits = append(f.Limits, of.Limits...)
		f.Values, f.Open = append(f.Values, of.Values...), f.Open || of.Open
		f.Choices = append(f.Choices, choice{Name: lastPart(part.get("$ref").text()), Members: of.Members})
		if f.Text == "" {
			f.Text = of.Text
		}
	}
	if len(f.Choices) == 1 {
		f.Members, f.Choices = f.Choices[0].Members, nil
	}
	f.Type = strings.Join(types, " "+b.words["Or"]+" ")
	return f
}

func (b *builder) parts(s *tree, keyword string) []*tree {
	if list := s.get(keyword); list != nil {
		return list.items
	}
	return nil
}

// values returns the values that a schema lists, and whether more may be added.
func (b *builder) values(s *tree) (values []string, open bool) {
	if known := s.get("x-extensible-enum"); known != nil {
		return known.texts(), true
	}
	if one := s.get("const"); one != nil {
		return []string{one.text()}, false
	}
	if list := s.get("enum"); list != nil {
		return list.texts(), false
	}
	return nil, false
}

// limits returns the limits of a value in words.
func (b *builder) limits(s *tree) []string {
	var list []string
	add := func(low, high, unit string) {
		least, most := s.get(low).text(), s.get(high).text()
		switch {
		case least != "" && most != "":
			list = append(list, least+" "+b.words["To"]+" "+most+unit)
		case most != "":
			list = append(list, b.words["AtMost"]+" "+most+unit)
		case least != "":
			list = append(list, b.words["AtLeast"]+" "+least+unit)
		}
	}
	add("minLength", "maxLength", " "+b.words["Characters"])
	add("minItems", "maxItems", " "+b.words["Items"])
	add("minimum", "maximum", "")
	if pattern := s.get("pattern").text(); pattern != "" && len(pattern) <= 60 {
		list = append(list, b.words["Pattern"]+" "+pattern)
	}
	return list
}

// flat resolves a schema, and joins the schemas of allOf into one.
func (b *builder) flat(schema *tree) *tree {
	s := schema.resolve(b.root)
	if s.get("allOf") == nil {
		return s
	}
	joined := &tree{object: true, members: map[string]*tree{}}
	properties := &tree{object: true, members: map[string]*tree{}}
	required := &tree{array: true}
	for _, part := range s.get("allOf").items {
		part = b.flat(part)
		part.each(func(name string, member *tree) {
			switch name {
			case "properties":
				member.each(func(name string, schema *tree) { properties.set(name, b.join(properties.get(name), schema)) })
			case "required":
				required.items = append(required.items, member.items...)
			default:
				joined.set(name, member)
			}
		})
	}
	s.each(func(name string, member *tree) {
		if name != "allOf" {
			joined.set(name, member)
		}
	})
	if len(properties.names) > 0 {
		joined.set("properties", properties)
		joined.set("required", required)
	}
	return joined
}

// join returns a member that several schemas of allOf describe.
func (b *builder) join(before, after *tree) *tree {
	if before == nil {
		return after
	}
	return &tree{object: true, names: []string{"allOf"}, members: map[string]*tree{"allOf": {array: true, items: []*tree{before, after}}}}
}

func lastPart(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }
