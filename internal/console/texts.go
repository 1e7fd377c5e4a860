package console

import (
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// text is a text of the interface in both languages. Its verbs are those of fmt.
type text struct{ es, en string }

// texts are the texts of one page by key. A key begins with the name of the page.
type texts map[string]text

// catalogue is the texts of all pages.
type catalogue map[string]text

// newCatalogue puts the texts of all pages together. It fails when two pages have the same
// key.
func newCatalogue(pages ...texts) (catalogue, error) {
	all := make(catalogue)
	for _, page := range pages {
		for key, one := range page {
			if _, taken := all[key]; taken {
				return nil, fmt.Errorf("console: two pages have the text %q", key)
			}
			all[key] = one
		}
	}
	return all, nil
}

// text returns a text in a language. It fails when there is none with the key.
func (c catalogue) text(language lang.Language, key string, args ...any) (string, error) {
	found, ok := c[key]
	if !ok {
		return "", fmt.Errorf("console: there is no text %q", key)
	}
	format := found.es
	if language == lang.English {
		format = found.en
	}
	if len(args) == 0 {
		return format, nil
	}
	return fmt.Sprintf(format, args...), nil
}
