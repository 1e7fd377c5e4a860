package reply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A field is an element that holds text.
type field struct {
	name     string
	optional bool
	valid    func(string) bool
}

// A shape describes a document: a root, one child, and the fields of that child
// in their order.
type shape struct {
	root, detail string
	fields       []field
}

// read returns the texts of the fields, by name. It fails with ErrMalformed when
// the document has any other element, another order or an invalid text.
func (s shape) read(root xmlsig.Element) (map[string]string, error) {
	if root.Name() != s.root {
		return nil, fmt.Errorf("%w: the root element must be %s", ErrMalformed, s.root)
	}
	parts := 0
	for range root.Children() {
		parts++
	}
	detail := root.Child(s.detail)
	if parts != 1 || detail.IsZero() {
		return nil, fmt.Errorf("%w: %s must have one child, %s", ErrMalformed, s.root, s.detail)
	}
	said := make(map[string]string, len(s.fields))
	next := 0
	for e := range detail.Children() {
		for next < len(s.fields) && s.fields[next].name != e.Name() && s.fields[next].optional {
			next++
		}
		if next == len(s.fields) || s.fields[next].name != e.Name() || e.HasChildren() {
			return nil, fmt.Errorf("%w: the elements of %s must be those of the format, in its order", ErrMalformed, s.detail)
		}
		f := s.fields[next]
		text := strings.TrimSpace(e.Text())
		if !f.valid(text) {
			return nil, fmt.Errorf("%w: the text of %s is not valid", ErrMalformed, f.name)
		}
		said[f.name] = text
		next++
	}
	for ; next < len(s.fields); next++ {
		if !s.fields[next].optional {
			return nil, fmt.Errorf("%w: %s is missing", ErrMalformed, s.fields[next].name)
		}
	}
	return said, nil
}

// isVersion also accepts 1, which the authority's own documents have.
func isVersion(s string) bool { return s == "1.0" || s == "1" }

func oneOf(values ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(values, s) }
}

func isDate(s string) bool { return !fiscal.ParseDGIIDate(s).IsZero() }

func isTime(s string) bool { return !fiscal.ParseDGIITime(s).IsZero() }

// isAmount accepts at most 16 digits and at most two decimals. The format requires
// two decimals, but the authority's own documents leave them out.
func isAmount(s string) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	_, err := fiscal.ParseDecimal(s)
	return err == nil && len(whole) <= 16 && len(fraction) <= 2
}
