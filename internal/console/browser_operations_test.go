package console

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// An operator makes a taxpayer ready: imports a certificate after a wrong password, and
// adds a range. Then a key is created and revoked, and the events of a webhook are sent
// again, all in a real browser.
func TestOperationsInABrowser(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	e.addTaxpayer("199000102", "Comercial Demostración, SRL")
	file := filepath.Join(t.TempDir(), "certificado.p12")
	e.must(os.WriteFile(file, e.p12(25, "secreta"), 0o600))
	b := e.openTab()
	u := b.signIn(e, store.RoleOperator)

	b.open("/console/taxpayers/" + e.taxpayer)
	b.fill("#address", "Av. Winston Churchill 95, Santo Domingo"+kb.Enter)
	b.wait(`document.querySelector('.notice-good') && document.querySelector('#p12')`)
	b.picture("taxpayer-missing")
	for _, password := range []string{"equivocada", "secreta"} {
		b.do("file", chromedp.SetUploadFiles("#p12", []string{file}))
		b.fill("#p12_password", password)
		b.click(`#certificate-form button[type=submit]`)
		if password == "equivocada" {
			b.wait(`document.querySelector('#p12_password-error')`)
		}
	}
	b.wait(`document.body.innerText.includes('El certificado está importado') && document.body.innerText.includes('Vence en 25 días')`)
	b.fill("#from", "1")
	b.fill("#to", "1000")
	b.click(`#range-form button[type=submit]`)
	b.wait(`document.querySelector('#expires-error')`)
	b.do("day", chromedp.SetValue("#expires", "2027-12-31"))
	b.click(`#range-form button[type=submit]`)
	b.wait(`document.body.innerText.includes('La secuencia está agregada') && document.body.innerText.includes('Puede emitir')`)
	b.picture("taxpayer")
	b.open("/console/taxpayers")
	b.picture("taxpayers")
	b.open("/console/taxpayers/new")
	b.picture("taxpayer-new")

	b.open("/console/keys")
	b.picture("keys-empty")
	b.click(`input[value="invoices.write"]`)
	b.click(`#new button[type=submit]`)
	b.wait(`document.querySelector('#api_key') && document.querySelector('#api_key').value.length > 30`)
	b.picture("keys-created")
	b.confirm(`.row-actions button.danger`, "")
	b.wait(`document.body.innerText.includes('La clave está revocada') && !document.querySelector('#api_key')`)

	e.browserWebhook(b)

	e.logRequests(e.taxpayer, 40)
	b.open("/console/requests")
	b.wait(`document.querySelectorAll('.groups tbody tr').length === 1`)
	b.picture("requests")
	b.click(`.groups tbody a`)
	b.wait(`location.search.includes('validation_error')`)
	b.click(`th.plain a`)
	b.wait(`document.querySelector('.verdict')`)
	b.picture("request")
	if os.Getenv("FISCALHUB_PICTURES") == "" {
		return
	}
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "", "dark"))
	for name, address := range map[string]string{
		"taxpayer": "/console/taxpayers/" + e.taxpayer, "taxpayers": "/console/taxpayers", "keys": "/console/keys?state=all",
		"webhook": "/console/webhooks/" + e.endpoints()[0].ID, "requests": "/console/requests",
	} {
		b.open(address)
		b.picture(name + "-dark")
	}
}

// browserWebhook creates a webhook in the browser, tests it, and sends its events again.
// The list of attempts updates itself.
func (e *env) browserWebhook(b *tab) {
	e.t.Helper()
	b.open("/console/webhooks")
	b.fill("#url", "https://sistema.example/eventos")
	b.click(`input[value="*"]`)
	b.picture("webhooks-new")
	b.click(`#new button[type=submit]`)
	b.wait(`document.querySelector('#secret') && document.querySelector('#secret').value.startsWith('whsec_')`)
	hook := e.endpoints()[0]
	b.click(`form[action$="/test"] button`)
	b.wait(`document.body.innerText.includes('La prueba llegó bien')`)
	e.poster.result.Store(&webhook.Result{Status: 503, Error: "status_503", Answer: []byte(`{"error":"mantenimiento"}`), Took: 812 * time.Millisecond})
	b.click(`form[action$="/test"] button`)
	b.wait(`document.body.innerText.includes('La prueba no llegó')`)
	n := e.addEvent("fiscal_document.accepted")
	b.do("since", chromedp.SetValue("#since", "2026-11-15T00:00"))
	b.click(`form:has(#since) button`)
	b.wait(`document.body.innerText.includes('Se reenviará 1 evento')`)
	now := e.clock.Now()
	e.must(e.o.Store.Update(e.t.Context(), func(tx *store.Tx) error {
		return tx.AddDeliveryAttempt(e.t.Context(), store.DeliveryAttempt{
			Scope: hook.Scope, ID: store.NewID(), EndpointID: hook.ID, EventID: n.ID, Kind: n.Kind, Number: 1, At: now, Took: 97 * time.Millisecond, HTTPStatus: 200,
		})
	}))
	b.wait(`document.querySelector('[data-live]').innerText.includes('` + n.ID + `')`)
	b.picture("webhook")
	b.evaluate(`(window.before = true)`)
	b.click(`[data-live] .row-actions button`)
	b.wait(`!window.before && document.body.innerText.includes('Se reenviará 1 evento')`)
	b.open("/console/webhooks")
	b.picture("webhooks")
}
