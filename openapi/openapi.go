// Package openapi owns the description of the public API, version 1: the
// OpenAPI 3.1 document that is its source of truth, and the same document as JSON.
// Package reference makes the page that shows it. It does not check requests: package
// api does, and its tests compare the answers with this document.
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	yaml "github.com/oasdiff/yaml3"
)

//go:embed openapi.yaml
var source []byte

// JSON returns the document as JSON, with its members in the order of the YAML
// file. All callers get the same bytes and must not change them.
func JSON() ([]byte, error) { return converted() }

// JSONAt returns the document as JSON for a service whose public address has a path: the
// address of the service and the patterns of Location begin with it.
func JSONAt(path string) ([]byte, error) {
	document, err := JSON()
	if err != nil || path == "" {
		return document, err
	}
	server, err := json.Marshal(path)
	if err != nil {
		return nil, fmt.Errorf("openapi: encode path: %w", err)
	}
	pattern, err := json.Marshal("^" + regexp.QuoteMeta(path) + "/v1/")
	if err != nil {
		return nil, fmt.Errorf("openapi: encode path: %w", err)
	}
	document = bytes.Replace(document, []byte(`"servers":[{"url":"/"`), append([]byte(`"servers":[{"url":`), server...), 1)
	pattern = append([]byte(`"pattern":`), bytes.TrimSuffix(pattern, []byte(`"`))...)
	document = bytes.ReplaceAll(document, []byte(`"pattern":"^/v1/`), pattern)
	return document, nil
}

// converted converts the document once, because the conversion is slow.
var converted = sync.OnceValues(func() ([]byte, error) { return toJSON(source) })

// toJSON converts nodes, not Go maps: a map loses the order of the members, in
// which the page shows the operations.
func toJSON(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("openapi: parse document: %w", err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, fmt.Errorf("openapi: the document is empty")
	}
	var out bytes.Buffer
	if err := writeNode(&out, doc.Content[0]); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func writeNode(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeString(out, n.Content[i].Value); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeNode(out, n.Content[i+1]); err != nil {
				return err
			}
		}
		out.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeNode(out, item); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		return writeScalar(out, n)
	default:
		// The document repeats itself instead of using anchors: it is easier to read.
		return fmt.Errorf("openapi: line %d: aliases are not allowed in this document", n.Line)
	}
}

func writeScalar(out *bytes.Buffer, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null", "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return fmt.Errorf("openapi: line %d: %w", n.Line, err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("openapi: line %d: %w", n.Line, err)
		}
		out.Write(text)
		return nil
	}
	// Everything else is text, also an unquoted date, because JSON has no dates.
	return writeString(out, n.Value)
}

func writeString(out *bytes.Buffer, s string) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("openapi: encode text: %w", err)
	}
	out.Truncate(out.Len() - 1) // the encoder ends each value with a new line
	return nil
}
