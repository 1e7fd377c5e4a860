package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// A translation is an English page and its Spanish one, as paths in the project.
type translation struct{ english, spanish string }

// translations lists every page that exists in both languages.
func translations() []translation {
	return []translation{
		{"README.md", "README.es.md"},
		{"docs/first-live-invoice.md", "docs/es/primera-factura.md"},
		{"docs/integration.md", "docs/es/integracion.md"},
		{"docs/after-a-rejection.md", "docs/es/despues-de-un-rechazo.md"},
		{"docs/console.md", "docs/es/consola.md"},
		{"docs/webhooks.md", "docs/es/webhooks.md"},
		{"docs/operations.md", "docs/es/operaciones.md"},
		{"docs/operations/start.md", "docs/es/operaciones/inicio.md"},
		{"docs/operations/proxy.md", "docs/es/operaciones/proxy.md"},
		{"docs/operations/databases.md", "docs/es/operaciones/bases-de-datos.md"},
		{"docs/operations/credentials.md", "docs/es/operaciones/credenciales.md"},
		{"docs/operations/issuing.md", "docs/es/operaciones/emision.md"},
		{"docs/operations/webhooks.md", "docs/es/operaciones/webhooks.md"},
		{"docs/operations/buyers.md", "docs/es/operaciones/compradores.md"},
		{"docs/operations/keys.md", "docs/es/operaciones/claves.md"},
		{"docs/operations/restore.md", "docs/es/operaciones/restauracion.md"},
		{"docs/operations/documents.md", "docs/es/operaciones/documentos.md"},
		{"docs/operations/people.md", "docs/es/operaciones/personas.md"},
		{"docs/operations/waiting.md", "docs/es/operaciones/espera.md"},
		{"docs/operations/monitor.md", "docs/es/operaciones/vigilancia.md"},
		{"docs/glossary.md", "docs/es/glosario.md"},
	}
}

// Each line of a Spanish page is the translation of the same line of the English page.
// So the headings, the rows of tables and the items of lists agree in order and number,
// the blocks of code have the same bytes, and the text names the same commands, flags,
// fields and statuses.
func TestSpanishPagesHaveTheStructureOfTheEnglishPages(t *testing.T) {
	t.Parallel()
	for _, page := range translations() {
		english, spanish := read(t, "../"+page.english), read(t, "../"+page.spanish)
		want, got := outline(english), outline(spanish)
		if len(want) != len(got) {
			t.Errorf("%s has %d lines, %s has %d", page.english, len(want), page.spanish, len(got))
		}
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Errorf("line %d is %q in %s and %q in %s", i+1, want[i], page.english, got[i], page.spanish)
				break // an added line moves all others
			}
		}
		if diff := cmp.Diff(codeInText(english), codeInText(spanish)); diff != "" {
			t.Errorf("the code in the text differs (-%s +%s):\n%s", page.english, page.spanish, diff)
		}
	}
}

// The first link of a page leads to the same page in the other language. All other links
// of a Spanish page lead to Spanish pages where they exist, and to the same headings as
// the links of the English page.
func TestSpanishPagesHaveTheLinksOfTheEnglishPages(t *testing.T) {
	t.Parallel()
	translated := map[string]string{} // the English target of each Spanish one, with and without an anchor
	for _, page := range translations() {
		translated[page.spanish] = page.english
		english, spanish := anchors(read(t, "../"+page.english)), anchors(read(t, "../"+page.spanish))
		for i := range min(len(english), len(spanish)) {
			translated[page.spanish+"#"+spanish[i]] = page.english + "#" + english[i]
		}
	}
	for _, page := range translations() {
		english, spanish := targets(t, page.english), targets(t, page.spanish)
		if len(english) == 0 || english[0] != page.spanish {
			t.Errorf("the first link of %s does not lead to %s", page.english, page.spanish)
		}
		if len(spanish) == 0 || spanish[0] != page.english {
			t.Errorf("the first link of %s does not lead to %s", page.spanish, page.english)
		}
		want, got := map[string]bool{page.english: true}, map[string]bool{page.english: true}
		for _, target := range english {
			if other, ok := translated[target]; ok {
				target = other
			}
			want[target] = true
		}
		for _, target := range spanish[min(1, len(spanish)):] {
			if other, ok := translated[target]; ok {
				target = other
			} else if english, _, _ := strings.Cut(target, "#"); slices.ContainsFunc(translations(), func(other translation) bool { return other.english == english }) {
				t.Errorf("%s links to %s, which exists in Spanish", page.spanish, target)
			}
			got[target] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the links differ (-%s +%s):\n%s", page.english, page.spanish, diff)
		}
	}
}

// Every page of the folder es is compared with its English page.
func TestSpanishPagesAreAllCompared(t *testing.T) {
	t.Parallel()
	for _, file := range pages(t) {
		if strings.HasPrefix(file, "docs/es/") && !slices.ContainsFunc(translations(), func(page translation) bool { return page.spanish == file }) {
			t.Errorf("%s is not in the list of translations", file)
		}
	}
}

// outline returns the kind of each line of a page: the marks of a heading, a row of a
// table, an item of a list or a paragraph. Lines of code are whole.
func outline(page string) []string {
	kind := regexp.MustCompile(`^(#+ |\||- |[0-9]+\. )`)
	var lines []string
	code := false
	for line := range strings.SplitSeq(page, "\n") {
		fence := strings.HasPrefix(line, "```")
		if !code && !fence && line != "" {
			if line = kind.FindString(line); line == "" {
				line = "paragraph"
			}
		}
		if fence {
			code = !code
		}
		lines = append(lines, line)
	}
	return lines
}

// withoutCode returns a page without its blocks of code.
func withoutCode(page string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
}

// codeInText returns the pieces of code in the sentences and tables of a page.
func codeInText(page string) map[string]bool {
	pieces := map[string]bool{}
	for _, piece := range regexp.MustCompile("`[^`\n]+`").FindAllString(withoutCode(page), -1) {
		pieces[piece] = true
	}
	return pieces
}

// targets returns the targets of the links of a page in order, as paths in the project.
func targets(t *testing.T, page string) []string {
	t.Helper()
	var list []string
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(withoutCode(read(t, "../"+page)), -1) {
		path, anchor, _ := strings.Cut(m[1], "#")
		switch {
		case strings.Contains(m[1], "://"):
			list = append(list, m[1])
			continue
		case path == "":
			path = page
		default:
			path = filepath.Join(filepath.Dir(page), path)
		}
		if anchor != "" {
			path += "#" + anchor
		}
		list = append(list, path)
	}
	return list
}

// anchors returns the anchor of each heading of a page, as GitHub makes them.
func anchors(page string) []string {
	var list []string
	used := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(withoutCode(page), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		n := used[anchor]
		used[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		list = append(list, anchor)
	}
	return list
}
