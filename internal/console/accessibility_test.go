package console

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// The rules of WCAG 2.2, levels A and AA, as axe-core checks them. testdata/axe.min.js is
// axe-core 4.14.0, under the Mozilla Public License 2.0.
const checkAccessibility = `axe.run(document, {preload: false, resultTypes: ['violations'], runOnly: {type: 'tag',
	values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa']}}).then(found => found.violations.map(v =>
	v.id + ' (' + v.help + '): ' + v.nodes.slice(0, 3).map(n => n.target + ' ' + n.html.slice(0, 160)).join(' | ')).join('\n'))`

// checkedPages are the names of the pages that have been checked.
var checkedPages sync.Map

// accessible fails the test when the page that is open violates a rule of accessibility.
// It checks each page once, half of them in each theme. With FISCALHUB_AXE=all it checks
// every state of every page, at
// two widths and in both themes.
func (b *tab) accessible(name string) {
	b.t.Helper()
	widths, themes := []int64{1280}, []string{[]string{"light", "dark"}[len(name)%2]}
	if os.Getenv("FISCALHUB_AXE") == "all" {
		widths, themes = []int64{1280, 390}, []string{"light", "dark"}
	} else if _, checked := checkedPages.LoadOrStore(strings.TrimSuffix(name, "-dark"), true); checked {
		return
	}
	b.evaluate(axe(b.t) + `; typeof axe === 'object'`)
	before, err := chromedp.Run(b, chromedp.Evaluate[string](`document.documentElement.dataset.theme || ''`))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, theme := range themes {
		b.theme(theme)
		for _, width := range widths {
			if len(widths) > 1 {
				b.do("size", chromedp.EmulateViewport(width, 900))
			}
			found, err := chromedp.Run(b, chromedp.Evaluate[string](checkAccessibility, chromedp.EvalAwaitPromise))
			if err != nil {
				b.t.Fatalf("%s: %v", name, err)
			}
			if found != "" {
				b.t.Errorf("%s %s at %d px violates:\n%s", name, theme, width, found)
			}
		}
	}
	b.theme(before)
	if len(widths) > 1 {
		b.do("size", chromedp.EmulateViewport(1280, 900))
	}
}

// theme changes the theme of the page that is open. Colours do not change slowly, or they
// would be measured on their way.
func (b *tab) theme(name string) {
	b.t.Helper()
	b.evaluate(`(document.documentElement.dataset.theme = '` + name + `', document.body.offsetHeight, document.getAnimations().forEach(a => a.finish()), true)`)
}

func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}
