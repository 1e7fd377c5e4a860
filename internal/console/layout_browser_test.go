package console

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// layoutWidths are the widths of a large screen, of small ones and of a phone, in pixels.
func layoutWidths() []int64 { return []int64{1440, 1024, 768, 390} }

// eachWidth shows the page that is open at every width and checks it there: expression says
// what is wrong, and is empty when nothing is. It also writes pictures into the folder
// FISCALHUB_PICTURES.
func (b *tab) eachWidth(name, expression string) {
	b.t.Helper()
	for _, width := range layoutWidths() {
		b.do("size", chromedp.EmulateViewport(width, 900))
		wrong, err := chromedp.Run(b, chromedp.Evaluate[string](expression))
		if err != nil {
			b.t.Fatalf("%s: %v", name, err)
		}
		if wrong != "" {
			b.t.Errorf("%s at %d px: %s", name, width, wrong)
		}
		if dir := os.Getenv("FISCALHUB_PICTURES"); dir != "" {
			got, err := chromedp.Run(b, chromedp.FullScreenshot(100))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("layout-%s-%d.png", name, width)), got, 0o600)
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.do("size", chromedp.EmulateViewport(1280, 900))
}

// overlapping says which visible elements of a selector overlap or are outside of the
// window. Expressions of this kind are for eachWidth.
const overlapping = `((selector) => {
	const boxes = [...document.querySelectorAll(selector)].map((e) => [e.id, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
	const wrong = boxes.filter(([, r]) => r.left < 0 || r.right > document.documentElement.clientWidth).map(([id]) => id + ' is outside');
	for (const [a, r] of boxes) for (const [b, s] of boxes) {
		if (a < b && r.left < s.right && s.left < r.right && r.top < s.bottom && s.top < r.bottom) wrong.push(a + ' overlaps ' + b);
	}
	return wrong.join(', ');
})`

// The errors of all fields of a line can be read at every width, and belong to their
// fields.
func TestErrorsOfALineDoNotOverlap(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := e.openTab()
	b.signIn(e, store.RoleAccountant, e.taxpayer)
	b.open(issueAddress)
	b.click(`button[value="add_line"]`)
	b.wait(`document.getElementsByName('lines.1.quantity')[0]`)
	b.evaluate(`([0, 1].forEach((n) => Object.entries({description: n ? 'Transporte' : '', quantity: 'dos', unit_price: 'mil', 'discount.value': '200', sku: 'x'})
		.forEach(([name, value]) => document.getElementsByName('lines.' + n + '.' + name)[0].value = value)), true)`)
	b.click(`button[value="issue"]`)
	b.wait(`document.getElementById('lines.1.quantity-error') && document.getElementById('lines.0.discount.value-error')`)
	b.wait(`[...document.querySelectorAll('[aria-invalid=true]')].length >= 7 &&
		[...document.querySelectorAll('[aria-invalid=true]')].every((f) => document.getElementById(f.getAttribute('aria-describedby'))?.innerText.length > 10)`)
	b.eachWidth("issue-errors", overlapping+`('.issue-line-grid .error, .issue-line-grid input, .issue-line-grid select, .issue-line-foot')`)
	b.fill(`[name="lines.1.quantity"]`, "2")
	b.wait(`document.getElementById('lines.1.quantity-error').hidden`)
}
