package console

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// A person opens the link, chooses a password, invites a colleague, sets up a second
// factor, signs out and signs in again, all in a real browser.
func TestAPersonInABrowser(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addTaxpayer("199000102", "Comercial Demostración, SRL")
	u, link, err := e.o.People.Create(t.Context(), people.Invitation{Name: "Ana Pérez", Email: "ana@example.com", Role: store.RoleOperator})
	e.must(err)
	for i, role := range []store.Role{store.RoleAuditor, store.RoleAccountant, store.RoleDeveloper} {
		b, made := e.signedIn(role, e.taxpayer)
		if i == 2 {
			_, err := e.o.People.Disable(t.Context(), made.ID)
			e.must(err)
		}
		b.get("/console/")
	}
	b := e.openTab()

	b.open("/console/welcome/" + link.Reveal())
	b.picture("welcome")
	b.fill("#password", "corta")
	b.fill("#password_again", "corta")
	b.click("main button[type=submit]")
	b.wait(`document.querySelector('#password-error') && document.activeElement.id === 'password'`)
	b.fill("#password", goodPassword)
	b.fill("#password_again", goodPassword)
	b.click("main button[type=submit]")
	b.wait(`location.pathname === '/console/'`)
	b.picture("overview")

	// On a phone the navigation is a menu, which opens without a script.
	b.do("phone", chromedp.EmulateViewport(390, 844))
	if !b.evaluate(`!document.querySelector('.side').checkVisibility()`) {
		t.Error("the menu is open on a phone")
	}
	b.click(".menu-button")
	b.wait(`document.querySelector('.side').checkVisibility()`)
	b.picture("menu")
	b.do("phone", chromedp.EmulateViewport(390, 844))
	b.click(`nav a[href="/console/users"]`)
	b.wait(`document.querySelectorAll('tbody tr').length === 4`)
	if b.evaluate(`document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page is wider than a phone")
	}
	b.do("desktop", chromedp.EmulateViewport(1280, 900))
	b.picture("users")
	b.fill("#name", "Luis Marte")
	b.fill("#email", "luis@example.com")
	b.do("taxpayer", chromedp.Click(`input[name=taxpayer]`))
	b.click("main form button[type=submit]")
	b.wait(`document.querySelector('#link') && document.querySelector('#link').value.includes('/console/welcome/')`)
	b.picture("user")
	b.confirm("button.danger", "user-question")
	b.wait(`document.body.innerText.includes('La persona está inactiva')`)

	b.open("/console/account")
	b.click(`form[action$="/begin"] button`)
	b.wait(`document.querySelector('svg.qr')`)
	b.picture("account")
	b.do("theme", chromedp.SetValue("#theme", "dark"))
	b.click(`form[action$="/preferences"] button`)
	b.wait(`document.documentElement.dataset.theme === 'dark' && document.querySelector('.notice-good')`)
	for _, name := range []string{"overview", "users", "account", "audit?verify=1", "nothing"} {
		b.open("/console/" + strings.TrimPrefix(name, "overview"))
		b.picture(strings.NewReplacer("?", "-", "=", "-").Replace(name) + "-dark")
	}
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "en", ""))
	b.open("/console/audit?verify=1")
	b.wait(`document.documentElement.lang === 'en' && document.querySelector('.box-good')`)
	b.picture("audit")
	b.open("/console/nothing")
	b.picture("nothing")

	b.click(`form[action="/console/sign-out"] button`)
	b.wait(`location.pathname === '/console/sign-in'`)
	b.picture("sign-in")
	b.fill("#email", "ana@example.com")
	b.fill("#password", "equivocada"+kb.Enter)
	b.wait(`document.querySelector('[role=alert]')`)
	b.picture("sign-in-denied")
	b.fill("#password", goodPassword+kb.Enter) // the email address stays in its field
	b.wait(`location.pathname === '/console/'`)
}

// An element updates itself without a reload, keeps the focus, says when the service cannot
// answer, and reloads the page when the session has ended.
func TestALiveFragmentInABrowser(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var shown atomic.Value
	shown.Store("uno")
	for _, language := range []string{"es", "en"} {
		for name, text := range map[string]string{"test-live": `<a id="link" href="/console/">{{.Data}}</a>`, "test-page": `{{.Data}}`} {
			_, err := e.templates[e.languageOf(language)].New(name).Parse(text)
			e.must(err)
		}
	}
	var broken atomic.Bool
	e.addLive("/console/test-live", func(x *request) error {
		if broken.Load() {
			return store.ErrUnavailable
		}
		return x.fragment("test-live", shown.Load())
	})
	e.addLive("/console/test-page", func(x *request) error {
		element, err := x.live("/console/test-live", "test-live", shown.Load())
		if err != nil {
			return err
		}
		return x.render("test-page", "test", element)
	})
	b := e.openTab()
	u := b.signIn(e, store.RoleAuditor)
	b.open("/console/test-page")
	b.wait(`document.querySelector('#link').innerText === 'uno'`)
	b.evaluate(`(window.mark = 1, document.querySelector('#link').focus(), true)`)
	shown.Store("dos")
	b.wait(`document.querySelector('#link').innerText === 'dos' && window.mark === 1 && document.activeElement.id === 'link'`)
	broken.Store(true)
	b.wait(`!document.querySelector('#stale').hidden`)
	broken.Store(false)
	b.wait(`document.querySelector('#stale').hidden`)
	_, err := e.o.People.Disable(t.Context(), u.ID)
	e.must(err)
	b.wait(`location.pathname === '/console/sign-in'`)
}

// An operator follows a document from its creation to the acceptance without a reload,
// finds it by every identifier, and decides an unknown outcome with evidence, all in a
// real browser.
func TestDocumentsInABrowser(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	b := w.openTab()
	u := b.signIn(w.env, store.RoleOperator)
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 12_500)

	b.open("/console/documents/" + inv.DocumentID)
	b.wait(`document.querySelector('.document-status').innerText.includes('En cola')`)
	b.evaluate(`(window.mark = 1, true)`)
	b.picture("document-queued")
	w.work() // takes a number, signs and sends
	b.wait(`document.querySelector('.document-status').innerText.includes('Enviado') && document.querySelector('h1').innerText === 'E310000000001'`)
	b.picture("document-submitted")
	w.drive(time.Hour)
	b.wait(`document.querySelector('.document-status').innerText.includes('Aceptado') && document.querySelector('iframe.printed') && !document.querySelector('[data-live]')`)
	b.wait(`window.mark === 1 && document.querySelector('#announcer').innerText === 'Aceptado' && document.querySelectorAll('.moment').length >= 7`)
	inv = w.read(inv)
	b.click("#xml-readable summary")
	b.picture("document-accepted")

	for _, q := range []string{inv.ExternalID, inv.ENCF, inv.TrackID, liveBuyer, "ferreteria perez", "14,750.00", "req_1", "clave-1", inv.DocumentID} {
		b.open("/console/")
		b.fill("#q", q+kb.Enter)
		b.wait(`location.pathname === '/console/documents' && document.querySelectorAll('tbody tr').length === 1`)
	}
	b.click(`tbody a`)
	b.wait(`document.querySelector('h1').innerText === 'E310000000001'`)

	unknown := w.unknown("Comercial Demostración, SRL", 980)
	b.open("/console/documents/" + unknown.DocumentID)
	b.wait(`document.querySelector('.advice').innerText.includes('No emita la venta otra vez')`)
	b.picture("document-unknown")
	b.do("as", chromedp.SetValue("#as", "rejected"))
	b.fill("#evidence", "Oficina Virtual, 15/11/2026: no existe")
	b.confirm(`form[action$="/resolve"] button`, "")
	b.wait(`document.querySelector('.notice-good') && document.querySelector('.document-status').innerText.includes('Rechazado')`)
	b.wait(`document.querySelector('.timeline').innerText.includes('` + u.Name + `')`)

	w.pictures()
}

// pictures shows the pages with documents in every state, for a person to look at.
func (w *liveEnv) pictures() {
	w.t.Helper()
	if os.Getenv("FISCALHUB_PICTURES") == "" {
		return
	}
	rejected := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento de secuencia no válida"}, "Inversiones Costa Norte, SRL", 43_200)
	conditional := w.judged(4, simulator.Message{Code: 1385, Text: "RNC del comprador no existe"}, "Clínica San Rafael, SA", 7_800)
	for i := range 60 {
		w.create(fiscal.Consumer, "Colmado La Esquina", 150+i*37)
		if i%6 == 0 {
			w.clock.Advance(50 * time.Minute)
		}
		w.drive(time.Minute)
	}
	w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 2_000)
	w.unknown("Distribuidora del Caribe, SRL", 5_100)
	w.index()
	for theme, suffix := range map[string]string{"light": "", "dark": "-dark"} {
		b := w.openTab()
		u := b.signIn(w.env, store.RoleOperator)
		w.must(w.o.People.SetPreferences(w.t.Context(), u.ID, "es", theme))
		for name, path := range map[string]string{
			"overview": "/console/", "documents": "/console/documents", "documents-none": "/console/documents?q=" + url.QueryEscape("nada así"),
			"document-rejected": documentAddress(rejected.DocumentID), "document-conditional": documentAddress(conditional.DocumentID),
		} {
			b.open(path)
			b.picture(name + suffix)
		}
	}
}

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
