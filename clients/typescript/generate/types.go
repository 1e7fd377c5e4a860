package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const head = `// Generated from openapi/openapi.yaml by "go run ./clients/typescript/generate". Do not edit.
`

// writer writes the TypeScript of one document.
type writer struct {
	root object
	out  strings.Builder
}

// generate returns the TypeScript of an OpenAPI document. It fails when the document uses
// something that it does not know, so that no type is wrong without notice.
func generate(document []byte) (string, error) {
	root, err := parse(document)
	if err != nil {
		return "", fmt.Errorf("read the document: %w", err)
	}
	w := &writer{root: root}
	w.out.WriteString(head)
	schemas := root.at("components", "schemas")
	for _, name := range schemas.names {
		if err := w.declare(name, schemas.at(name)); err != nil {
			return "", fmt.Errorf("schema %s: %w", name, err)
		}
	}
	// The closed sets of values of parameters have a type as well.
	parameters := root.at("components", "parameters")
	for _, name := range parameters.names {
		p := parameters.at(name)
		if schema := p.at("schema"); schema.has("enum") {
			schema.values["description"] = p.text("description")
			if err := w.declare(name, schema); err != nil {
				return "", fmt.Errorf("parameter %s: %w", name, err)
			}
		}
	}
	w.operations()
	return w.out.String(), nil
}

// declare writes the type of a schema: an interface for an object, and an alias for
// everything else.
func (w *writer) declare(name string, schema object) error {
	w.out.WriteString("\n" + comment(schema.text("description"), ""))
	name = typeName(name)
	if isRecord(schema) && (schema.has("properties") || schema.has("required")) {
		body, err := w.record(schema, "")
		if err != nil {
			return err
		}
		fmt.Fprintf(&w.out, "export interface %s %s\n", name, body)
		return nil
	}
	text, err := w.typeOf(schema, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(&w.out, "export type %s = %s;\n", name, text)
	return nil
}

// typeName returns the name of a schema in TypeScript, where Error is a class.
func typeName(name string) string {
	if name == "Error" {
		return "ErrorAnswer"
	}
	return name
}

// isRecord reports whether a schema has members of its own and nothing else.
func isRecord(s object) bool {
	return !s.has("$ref") && !s.has("allOf") && !s.has("oneOf") && !s.has("anyOf") && (s.text("type") == "object" || s.has("properties"))
}

// typeOf returns the type of a schema.
func (w *writer) typeOf(s object, indent string) (string, error) {
	switch {
	case s.has("$ref"):
		return typeName(s.text("$ref")[strings.LastIndex(s.text("$ref"), "/")+1:]), nil
	case s.has("allOf"):
		return w.join(s.list("allOf"), " & ", indent)
	case s.has("oneOf"):
		return w.join(s.list("oneOf"), " | ", indent)
	case s.has("anyOf"):
		return w.join(s.list("anyOf"), " | ", indent)
	case s.has("const"):
		return literal(s.values["const"]), nil
	case s.has("enum"):
		return literals(s.list("enum")), nil
	case s.has("x-extensible-enum"):
		// Values may be added later. The editor still proposes the known ones.
		return literals(s.list("x-extensible-enum")) + " | (string & {})", nil
	case isRecord(s):
		return w.record(s, indent)
	}
	var all []string
	for _, kind := range s.texts("type") {
		text, err := w.simple(kind, s, indent)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "", fmt.Errorf("a schema without a type: %v", s.names)
	}
	return strings.Join(all, " | "), nil
}

// simple returns the type of a schema for a named type.
func (w *writer) simple(kind string, s object, indent string) (string, error) {
	switch kind {
	case "string", "boolean", "null":
		return kind, nil
	case "number", "integer":
		return "number", nil
	case "array":
		items, err := w.typeOf(s.at("items"), indent)
		if err != nil {
			return "", err
		}
		if strings.ContainsAny(items, "|&") {
			items = "(" + items + ")"
		}
		return items + "[]", nil
	default:
		return "", fmt.Errorf("the type %q is not known", kind)
	}
}

// join joins the types of a list of schemas.
func (w *writer) join(list []any, separator, indent string) (string, error) {
	var all []string
	for _, item := range list {
		schema, _ := item.(object)
		text, err := w.typeOf(schema, indent)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return strings.Join(all, separator), nil
}

// record returns the members of an object in braces. Answers may get further members, so
// types do not exclude them.
func (w *writer) record(s object, indent string) (string, error) {
	properties, required := s.at("properties"), s.texts("required")
	if len(properties.names) == 0 && len(required) == 0 {
		return "Record<string, never>", nil
	}
	inner := indent + "  "
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range properties.names {
		p := properties.at(name)
		text, err := w.typeOf(p, inner)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		mark := "?"
		if slices.Contains(required, name) {
			mark = ""
		}
		b.WriteString(comment(p.text("description"), inner))
		fmt.Fprintf(&b, "%s%s%s: %s;\n", inner, name, mark, text)
	}
	for _, name := range required {
		if !properties.has(name) { // required, and described by a schema that has this one as a part
			fmt.Fprintf(&b, "%s%s: unknown;\n", inner, name)
		}
	}
	b.WriteString(indent + "}")
	return b.String(), nil
}

// operations writes the method, the path and the status of success of each operation.
func (w *writer) operations() {
	w.out.WriteString("\n/** The operations of the API: method, path, and the status of a success. */\nexport const operations = {\n")
	paths := w.root.at("paths")
	for _, path := range paths.names {
		item := paths.at(path)
		for _, method := range item.names {
			op := item.at(method)
			if op.text("operationId") == "" {
				continue // parameters of all methods
			}
			success := ""
			for _, status := range op.at("responses").names {
				if strings.HasPrefix(status, "2") {
					success = status
					break
				}
			}
			fmt.Fprintf(&w.out, "  %s: { method: %q, path: %q, status: %s },\n", op.text("operationId"), strings.ToUpper(method), path, success)
		}
	}
	w.out.WriteString("} as const;\n")
}

// comment returns a description as a comment.
func comment(text, indent string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "*/", "* /")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if len(lines) == 1 {
		return indent + "/** " + text + " */\n"
	}
	var b strings.Builder
	b.WriteString(indent + "/**\n")
	for _, line := range lines {
		b.WriteString(strings.TrimRight(indent+" * "+line, " ") + "\n")
	}
	return b.String() + indent + " */\n"
}

func literals(list []any) string {
	var all []string
	for _, value := range list {
		all = append(all, literal(value))
	}
	return strings.Join(all, " | ")
}

func literal(value any) string {
	if text, ok := value.(string); ok {
		return strconv.Quote(text)
	}
	return fmt.Sprint(value)
}
