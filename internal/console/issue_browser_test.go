package console

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// An accountant issues an invoice with a mistake first, and exports the month.
func TestAnAccountantInABrowser(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := e.openTab()
	u := b.signIn(e, store.RoleAccountant, e.taxpayer)

	b.open(issueAddress)
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a00.00'`)
	b.picture("issue-empty")
	b.fill(`[name="buyer.tax_id"]`, "19900002")
	b.wait(`document.querySelector('#tax-id-check').innerText.includes('9 dígitos')`)
	b.fill(`[name="buyer.legal_name"]`, "Ferretería El Sol, SRL")
	b.fill(`[name="lines.0.description"]`, "Cemento gris, saco de 42.5 kg")
	b.fill(`[name="lines.0.unit_price"]`, "450.00")
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a0531.00'`)
	b.evaluate(`(window.mark = 1, true)`)
	b.click(`button[value="add_line"]`)
	b.wait(`document.activeElement.name === 'lines.1.description' && window.mark === 1`)
	b.fill(`[name="lines.1.description"]`, "Transporte")
	b.fill(`[name="lines.1.unit_price"]`, "mil")
	b.click(`button[value="issue"]`)
	b.wait(`document.getElementById('lines.1.unit_price-error') && document.getElementById('buyer.tax_id-error')`)
	b.wait(`document.activeElement.getAttribute('aria-invalid') === 'true'`)
	b.picture("issue-wrong")
	b.evaluate(`(document.getElementsByName("buyer.tax_id")[0].value = "", true)`)
	b.fill(`[name="buyer.tax_id"]`, "199-00002-1")
	b.evaluate(`(document.getElementsByName("lines.1.unit_price")[0].value = "", true)`)
	b.fill(`[name="lines.1.unit_price"]`, "1,000.00")
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a01,711.00' && document.querySelector('#tax-id-check .badge-good')`)
	b.picture("issue")
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "en", "dark"))
	b.click(`aside button[value="preview"]`)
	b.wait(`document.querySelector('#issue-totals').innerText === 'Totals'`)
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "", ""))
	b.click(`button[value="issue"]`)
	b.wait(`location.pathname.startsWith('/console/documents/') && location.pathname !== '/console/documents/new'`)
	if all := e.onlyInvoices(); len(all) != 1 || all[0].Total != "1711.00" {
		t.Errorf("the invoices are %+v", all)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.o.Exports.Run(ctx) }()
	defer func() { stop(); <-ended }()
	b.open(exportsAddress)
	b.picture("exports-empty")
	b.evaluate(`(document.getElementById("from").value = "2026-11-01", document.getElementById("to").value = "2026-11-30", true)`)
	b.do("pdf", chromedp.Click(`input[name=include]`))
	b.click(`main form button.primary`)
	b.wait(`document.querySelector('a[href$="/file"]')`)
	b.wait(`fetch(document.querySelector('a[href$="/file"]').href).then((a) => a.blob()).then((x) => { window.size = x.size }), window.size > 500`)
	b.picture("exports")
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "", "dark"))
	b.open(exportsAddress)
	b.picture("exports-dark")
	b.open(issueAddress + "?template=" + e.onlyInvoices()[0].DocumentID)
	b.picture("issue-dark")
}

// After Back, the totals are those of the form as the browser shows it.
func TestThePreviewAfterBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := e.openTab()
	b.signIn(e, store.RoleAccountant, e.taxpayer)
	b.open(issueAddress)
	b.fill(`[name="lines.0.description"]`, "Transporte")
	b.fill(`[name="lines.0.unit_price"]`, "450.00")
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a0531.00'`)
	b.open(exportsAddress)
	b.evaluate(`(setTimeout(() => history.back()), true)`) // after the answer
	b.wait(`location.pathname === '` + issueAddress + `' && document.querySelector('#issue-total').innerText ===
		(document.getElementsByName('lines.0.unit_price')[0].value ? 'RD$\u00a0531.00' : 'RD$\u00a00.00')`)
	// A page from the memory of the browser, with a value that the server has not seen.
	b.evaluate(`(document.getElementsByName('lines.0.unit_price')[0].value = '100', dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true})), true)`)
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a0118.00'`)
}

// What a person has written stays in the form when the session ends, and the page says what
// to do.
func TestAnInvoiceStaysInItsFormWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := e.openTab()
	u := b.signIn(e, store.RoleAccountant, e.taxpayer)
	b.open(issueAddress)
	b.fill(`[name="lines.0.description"]`, "Cemento")
	_, err := e.o.People.Disable(t.Context(), u.ID)
	e.must(err)
	stays := ` && document.getElementsByName('lines.0.description')[0].value.startsWith('Cemento')`
	b.click(`button[value="add_line"]`)
	b.wait(`!document.querySelector('[data-unsent]').hidden` + stays)
	b.evaluate(`(document.querySelector('[data-unsent]').hidden = true)`)
	b.click(`button[value="issue"]`)
	b.wait(`!document.querySelector('[data-unsent]').hidden && !document.querySelector('button[value="issue"]').disabled` + stays)
	b.evaluate(`(document.querySelector('[data-unsent]').hidden = true)`)
	b.fill(`[name="lines.0.description"]`, " gris")
	b.wait(`!document.querySelector('[data-unsent]').hidden` + stays)
}

// The pages of operators about work and the authority update themselves.
func TestPendingWorkInABrowser(t *testing.T) {
	t.Parallel()
	e := newBrowserLiveEnv(t)
	e.addWaiting(e.taxpayer, "F-2026-0101", "submit", func(j *store.Job) { j.RunAt = e.clock.Now().Add(3 * time.Minute) })
	e.addWaiting(e.taxpayer, "F-2026-0102", "poll")
	b := e.openTab()
	u := b.signIn(e, store.RoleOperator)
	b.open(workAddress)
	b.wait(`document.querySelectorAll('tbody tr').length === 2`)
	b.evaluate(`(window.mark = 1, true)`)
	e.addWaiting(e.taxpayer, "F-2026-0103", "reconcile")
	b.wait(`document.querySelectorAll('tbody tr').length === 3 && window.mark === 1`)
	b.picture("work")
	b.click(`a[href$="/requeue"]`)
	b.wait(`document.querySelector('#reason')`)
	b.picture("requeue")
	b.open(authorityAddress)
	b.picture("authority")
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "en", "dark"))
	b.open(authorityAddress)
	b.picture("authority-dark")
	b.open(workAddress)
	b.picture("work-dark")
}
