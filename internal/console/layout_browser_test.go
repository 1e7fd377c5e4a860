package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// layoutWidths are the widths of a large screen, of small ones and of a phone, in pixels.
func layoutWidths() []int64 { return []int64{1440, 1280, 1024, 768, 390} }

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

// tooWide says which tables, or whether the page itself, must be scrolled sideways.
const tooWide = `(() => {
	const wrong = [...document.querySelectorAll('.table-wrap')].filter((t) => t.scrollWidth > t.clientWidth + 1)
		.map((t) => t.getAttribute('aria-label') + ' needs ' + t.scrollWidth + ' of ' + t.clientWidth);
	const page = document.documentElement;
	if (page.scrollWidth > page.clientWidth) wrong.push('the page needs ' + page.scrollWidth + ' of ' + page.clientWidth);
	return wrong.join(', ');
})()`

// Lists with long names and many columns are read without scrolling sideways, in both
// languages: no status and no button is out of sight.
func TestListsFitTheWindow(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	first := w.fillLists()
	b := w.openTab()
	u := b.signIn(w.env, store.RoleOperator)
	for language, lists := range map[string][]string{
		"en": {"documents", "work"}, // its words are shorter
		"es": {
			"documents", "exports", "keys", "users", "taxpayers", "work", "audit", "account", "authority",
			"taxpayers/" + w.taxpayer, "documents/" + first.DocumentID,
		},
	} {
		w.must(w.o.People.SetPreferences(t.Context(), u.ID, language, ""))
		for _, list := range lists {
			b.open("/console/" + list)
			b.wait(`document.querySelector('main h1')`)
			name, _, _ := strings.Cut(list, "/0")
			b.eachWidth(name+"-"+language, tooWide)
		}
	}
}

// fillLists stores rows for all lists, with long names.
func (w *liveEnv) fillLists() (first store.Invoice) {
	w.t.Helper()
	const long = "Compañía Dominicana de Importaciones, Exportaciones y Servicios Logísticos del Caribe Oriental y Asociados, SRL"
	ctx, now := w.t.Context(), w.clock.Now()
	other := w.addTaxpayer("199000102", long)
	first = w.create(fiscal.FiscalCredit, long, 12_345_678)
	w.drive(time.Hour)
	w.unknown(long, 9_500_000)
	w.create(fiscal.Consumer, "Consumidor final", 350)
	w.addWaiting(w.taxpayer, "ANDROMEDA-2026-11-000123", "submit", func(j *store.Job) {
		j.Attempt, j.Cause = 8, cause.New(cause.CallUnavailable, "Recepcion", "HTTP 503 Service Temporarily Unavailable")
	})
	w.addWaiting(other, "VENTA-9001", "reconcile")
	w.addWaiting(other, "VENTA-9002", "")
	operator, _ := w.signedIn(store.RoleOperator)
	all := url.Values{"taxpayer": {other}, "environment": {"production"}, "expires": {now.AddDate(1, 0, 0).Format(time.DateOnly)}}
	for _, scope := range apikey.AllScopes() {
		all.Add("scopes", string(scope))
	}
	if got := operator.send(http.MethodPost, "/console/keys", all); got.StatusCode != http.StatusCreated {
		w.t.Fatalf("the key was answered with %d", got.StatusCode)
	}
	_, _, err := w.o.People.Create(ctx, people.Invitation{
		Name: "María Altagracia de los Santos Encarnación", Email: "maria.altagracia.delossantos@contabilidad.ejemplo.com.do", Role: store.RoleAccountant, TaxpayerIDs: []string{w.taxpayer, other},
	})
	w.must(err)
	w.signedIn(store.RoleAccountant, other)
	day := fiscal.DateOf(now)
	for _, state := range []store.ExportState{store.ExportDone, store.ExportRunning, store.ExportFailed, store.ExportWaiting} {
		e := store.Export{
			Scope: store.Scope{Environment: fiscal.Production, TaxpayerID: other}, ID: store.NewID(), From: day, To: day, Include: []string{"xml", "csv", "pdf"}, State: state, Done: 12_345, Total: 67_890,
			Problem: "write /var/lib/fiscalhub/exports/0198.zip.partial: no space left on device", CreatedBy: "María Altagracia de los Santos Encarnación", CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(store.ExportKept),
		}
		w.must(w.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.CreateExport(ctx, e) }))
		if state == store.ExportWaiting {
			continue
		}
		_, err := w.o.Store.ClaimExport(ctx, fiscal.Production, "node", now, now.Add(time.Hour))
		w.must(err)
		w.must(w.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.SaveExport(ctx, e, "node", now, now.Add(time.Hour)) }))
	}
	w.index()
	return first
}

// A list on paper has all columns, is dark on white in both themes, and has no filters and
// no buttons.
func TestListsOnPaper(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	w.fillLists()
	b := w.openTab()
	u := b.signIn(w.env, store.RoleOperator)
	w.must(w.o.People.SetPreferences(t.Context(), u.ID, "es", "dark"))
	const paper = 725 // a sheet of 216 mm without its margins, in pixels
	b.do("paper", chromedp.EmulateViewport(paper, 900), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
	for _, list := range []string{"documents", "exports", "keys", "users", "taxpayers", "work", "audit"} {
		b.open("/console/" + list)
		b.wait(`document.querySelector('tbody tr')`)
		wrong, err := chromedp.Run(b, chromedp.Evaluate[string](`(() => {
			const wrong = [], width = `+strconv.Itoa(paper)+`;
			for (const e of document.querySelectorAll('thead th, tbody th, tbody td, .badge')) {
				const r = e.getBoundingClientRect();
				if (r.right > width) wrong.push(e.innerText + ' ends at ' + r.right);
			}
			for (const e of document.querySelectorAll('.filters, .side, .bar, .button, button')) if (e.getClientRects().length) wrong.push(e.className + ' is printed');
			if (getComputedStyle(document.body).color !== 'rgb(23, 32, 43)') wrong.push('the text is ' + getComputedStyle(document.body).color);
			return wrong.slice(0, 8).join(', ');
		})()`))
		w.must(err)
		if wrong != "" {
			t.Errorf("%s: %s", list, wrong)
		}
		if dir := os.Getenv("FISCALHUB_PICTURES"); dir != "" {
			got, err := chromedp.Run(b, chromedp.FullScreenshot(100))
			w.must(err)
			w.must(os.WriteFile(filepath.Join(dir, "paper-"+list+".png"), got, 0o600))
		}
	}
}
