package console

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// joinTexts puts the texts of all pages together. A key begins with the name of its page.
// It fails when two pages have the same key.
func joinTexts(pages ...lang.Texts) (lang.Texts, error) {
	all, count := make(lang.Texts), 0
	for _, page := range pages {
		maps.Copy(all, page)
		if count += len(page); len(all) < count {
			return nil, fmt.Errorf("console: two pages have the same text: one is among %v", slices.Sorted(maps.Keys(page)))
		}
	}
	return all, nil
}
