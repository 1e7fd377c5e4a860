package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A term is a row of a glossary: the word, the word of the other language and
// the meaning.
type term struct{ word, other, meaning string }

func glossary(t *testing.T, page string) []term {
	t.Helper()
	var terms []term
	for _, m := range regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \|$`).FindAllStringSubmatch(read(t, page), -1) {
		terms = append(terms, term{m[1], m[2], m[3]})
	}
	if rows := strings.Count(read(t, page), "\n| "); len(terms) != rows-1 {
		t.Errorf("%s: %d of %d rows define a word", page, len(terms), rows-1)
	}
	return terms
}

// Both glossaries define the same words: each names the other's beside its own.
func TestGlossariesDefineTheSameWords(t *testing.T) {
	t.Parallel()
	pairs := func(terms []term, swap bool) []string {
		var pairs []string
		for _, w := range terms {
			if swap {
				w.word, w.other = w.other, w.word
			}
			pairs = append(pairs, w.word+" = "+w.other)
		}
		slices.Sort(pairs)
		return pairs
	}
	english, spanish := glossary(t, "glossary.md"), glossary(t, "es/glosario.md")
	if diff := cmp.Diff(pairs(english, false), pairs(spanish, true)); diff != "" {
		t.Errorf("the glossaries differ (-glossary.md +es/glosario.md):\n%s", diff)
	}
}

// Words are in alphabetical order, defined once, and by whole sentences.
func TestGlossariesAreInOrder(t *testing.T) {
	t.Parallel()
	plain := strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ñ", "n")
	for _, page := range []string{"glossary.md", "es/glosario.md"} {
		before := ""
		for _, w := range glossary(t, page) {
			if word := plain.Replace(strings.ToLower(w.word)); word <= before {
				t.Errorf("%s: %q stands at the wrong place or twice", page, w.word)
			} else {
				before = word
			}
			if !strings.HasSuffix(w.meaning, ".") {
				t.Errorf("%s: the meaning of %q is no sentence", page, w.word)
			}
		}
	}
}
