package reply

import (
	"fmt"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A field is an element that holds text: whether it may be missing, and what it
// may say.
type field struct {
	name     string
	optional bool
	says     func(string) bool
}

// A shape is a document that is a root, one element in it, and its fields in
// their order.
type shape struct {
	root, detail string
	fields       []field
}

// read returns what the fields say. Whatever the shape does not have is refused.
func (s shape) read(root xmlsig.Element) (map[string]string, error) {
	if root.Name() != s.root {
		return nil, fmt.Errorf("%w: the root is not %s", ErrMalformed, s.root)
	}
	parts := 0
	for range root.Children() {
		parts++
	}
	detail := root.Child(s.detail)
	if parts != 1 || detail.IsZero() {
		return nil, fmt.Errorf("%w: %s holds %s alone", ErrMalformed, s.root, s.detail)
	}
	said := make(map[string]string, len(s.fields))
	next := 0
	for e := range detail.Children() {
		for next < len(s.fields) && s.fields[next].name != e.Name() && s.fields[next].optional {
			next++
		}
		if next == len(s.fields) || s.fields[next].name != e.Name() || e.HasChildren() {
			return nil, fmt.Errorf("%w: the elements of %s are not those of the format, in its order", ErrMalformed, s.detail)
		}
		f := s.fields[next]
		text := strings.TrimSpace(e.Text())
		if !f.says(text) {
			return nil, fmt.Errorf("%w: %s is not of its format", ErrMalformed, f.name)
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

// isVersion takes the 1 as well that the authority's own documents say.
func isVersion(s string) bool { return s == "1.0" || s == "1" }

func isRNC(s string) bool { return (len(s) == 9 || len(s) == 11) && digits(s) }

func isENCF(s string) bool { return len(s) == 13 && s[0] == 'E' && digits(s[1:]) }

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func oneOf(values ...string) func(string) bool {
	return func(s string) bool {
		for _, v := range values {
			if s == v {
				return true
			}
		}
		return false
	}
}

func isDate(s string) bool { return !fiscal.ParseDGIIDate(s).IsZero() }

func isClock(s string) bool { return !fiscal.ParseDGIITime(s).IsZero() }

// isAmount takes 16 digits and two decimals, or fewer: the format has always two,
// and the authority's own documents leave them out.
func isAmount(s string) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	_, err := fiscal.ParseDecimal(s)
	return err == nil && len(whole) <= 16 && len(fraction) <= 2
}
