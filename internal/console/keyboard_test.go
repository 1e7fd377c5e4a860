package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Days are typed with the same number for the day and the month: the order of a date field
// depends on the language of the browser.
const (
	november11 = "11112026"
	december12 = "12122026"
)

// choose opens the chooser of files of a field, which the browser shows, and takes a file.
func (b *tab) choose(selector, file string) {
	b.t.Helper()
	b.reach(selector)
	b.do(selector, chromedp.SetUploadFiles(selector, []string{file}))
}

// An operator without a mouse makes a taxpayer ready, suspends it, and works with keys,
// webhooks, fences and pending documents.
func TestOperationsWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	released := make(chan store.Scope, 1)
	e := newEnv(t, certification, func(o *Options) {
		o.Release = func(_ context.Context, scope store.Scope) error { released <- scope; return nil }
	})
	b := e.openTab()
	b.signIn(e, store.RoleOperator)
	e.taxpayerWithTheKeyboard(b)
	e.keysWithTheKeyboard(b)
	e.webhooksWithTheKeyboard(b)

	scope := store.Scope{Environment: e.o.Environment, TaxpayerID: e.taxpayer}
	e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		n := store.NumberRange{Scope: scope, ID: store.NewID(), Type: fiscal.Consumer, First: 1, Last: 5000, Next: 1, CreatedAt: e.clock.Now()}
		if err := tx.AddNumberRange(t.Context(), n); err != nil {
			return err
		}
		return tx.Do(t.Context(), new(store.Batch).FenceNumberRange(n, e.clock.Now()))
	}))
	b.visit(authorityAddress)
	b.send(`form[action$="/release"] button`, false)
	if got := <-released; got != scope {
		t.Errorf("the release is for %+v", got)
	}

	e.addWaiting(e.taxpayer, "F-2026-0101", "")
	b.visit(workAddress + "?stage=none")
	b.push(`a[href$="/requeue"]`)
	b.wait(`document.querySelector('#reason')`)
	b.skip()
	b.write("#reason", "El proceso se detuvo")
	b.send(`form[action$="/requeue"] button.primary`, false)
	b.wait(`document.querySelector('.notice-good')`)
	b.wantForms()
}

func (e *env) taxpayerWithTheKeyboard(b *tab) {
	e.t.Helper()
	dir := e.t.TempDir()
	certificate, logo := filepath.Join(dir, "certificado.p12"), filepath.Join(dir, "logo.png")
	e.must(os.WriteFile(certificate, e.p12(25, "secreta"), 0o600))
	e.must(os.WriteFile(logo, picture(e.t), 0o600))

	b.visit("/console/taxpayers/new")
	b.write("#rnc", "199000102")
	b.write("#legal_name", "Zapatería Nueva, SRL")
	b.send(`form[action="/console/taxpayers"] button.primary`, false)
	b.wait(`document.querySelector('h1').innerText === 'Zapatería Nueva, SRL'`)
	b.skip()
	b.write("#address", "Av. Winston Churchill 95, Santo Domingo")
	b.send("#profile-form button.primary", false)
	b.wait(`document.querySelector('.notice-good') && document.querySelector('#profile .badge-good')`)
	b.skip()
	b.push("#logo-form summary")
	b.choose("#logo", logo)
	b.send("#logo-form button[type=submit]", false)
	b.wait(`document.querySelector('img.logo')`)
	b.skip()
	b.choose("#p12", certificate)
	b.write("#p12_password", "secreta")
	b.send("#certificate-form button[type=submit]", false)
	b.shows("El certificado está importado")
	b.skip()
	b.write("#from", "1")
	b.write("#to", "1000")
	b.write("#expires", december12)
	b.send("#range-form button[type=submit]", false)
	b.shows("La secuencia está agregada")
	b.skip()
	b.send(`form[action$="/revoke"] button`, true)
	b.wait(`!document.querySelector('form[action$="/revoke"]')`)
	b.skip()
	b.write("#reason", "Cambio de dueño")
	b.send(`form[action$="/suspend"] button`, true)
	b.wait(`document.querySelector('form[action$="/resume"]')`)
	b.skip()
	b.send(`form[action$="/resume"] button`, false)
	b.wait(`document.querySelector('form[action$="/suspend"]')`)
}

func (e *env) keysWithTheKeyboard(b *tab) {
	e.t.Helper()
	b.visit("/console/keys")
	b.reach(`input[value="invoices.write"]`)
	b.press(" ")
	b.send("#new button[type=submit]", false)
	b.wait(`document.querySelector('#api_key')`)
	b.skip()
	b.send(`form[action$="/rotate"] button`, true)
	b.wait(`document.querySelector('#api_key')`)
	b.skip()
	b.send(`form[action$="/revoke"] button`, true)
	b.shows("La clave está revocada")
}

func (e *env) webhooksWithTheKeyboard(b *tab) {
	e.t.Helper()
	b.visit("/console/webhooks")
	b.write("#url", "https://sistema.example/eventos")
	b.reach(`input[value="*"]`)
	b.press(" ")
	b.send("#new button[type=submit]", false)
	b.wait(`document.querySelector('#secret')`)
	hook := e.endpoints()[0]
	page := "/console/webhooks/" + hook.ID
	b.skip()
	b.send(`form[action$="/test"] button`, false)
	b.shows("La prueba llegó bien")

	n := e.addEvent("fiscal_document.accepted")
	e.must(e.o.Store.Update(e.t.Context(), func(tx *store.Tx) error {
		return tx.AddDeliveryAttempt(e.t.Context(), store.DeliveryAttempt{
			Scope: hook.Scope, ID: store.NewID(), EndpointID: hook.ID, EventID: n.ID, Kind: n.Kind, Number: 1, At: e.clock.Now(), Took: 97 * time.Millisecond, HTTPStatus: 200,
		})
	}))
	b.visit(page)
	b.write("#since", november11+kb.ArrowRight+"0101A")
	b.send(`form:has(#since) button`, false)
	b.shows("Se reenviará 1 evento")
	b.visit(page)
	b.send(`form:has([name=failed]) button`, false)
	b.wait(`document.querySelector('.box-good')`)
	b.visit(page)
	b.send(`form:has([name=event]) button`, false)
	b.shows("Se reenviará 1 evento")
	b.visit(page)
	b.send(`form[action$="/rotate"] button`, true)
	b.wait(`document.querySelector('#secret')`)
	e.must(e.o.Store.Update(e.t.Context(), func(tx *store.Tx) error {
		return tx.DisableEndpoint(e.t.Context(), hook.Scope, hook.ID, store.DisabledFailing, e.clock.Now())
	}))
	b.visit(page)
	b.send(`form[action$="/enable"] button`, false)
	b.wait(`!document.querySelector('form[action$="/enable"]')`)
	b.skip()
	b.send(`form[action$="/delete"] button`, true)
	b.wait(`location.pathname === '/console/webhooks'`)
}

// An operator without a mouse finds a document, reads its XML, sends one again, and decides
// the outcome of another.
func TestDocumentsWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	b := w.openTab()
	b.signIn(w.env, store.RoleOperator)
	lost := w.unknown("Ferretería Pérez, SRL", 1000)
	w.drive(40 * time.Second) // one look-up, which shows nothing

	b.visit("/console/")
	b.write("#q", "ferreteria"+kb.Enter)
	b.wait(`location.pathname === '/console/documents' && document.querySelectorAll('tbody tr').length === 1`)
	b.skip()
	b.push("tbody a")
	b.wait(`location.pathname === '/console/documents/` + lost.DocumentID + `'`)
	b.skip()
	b.push("#resend summary")
	b.write("#reason", "la DGII no lo tiene")
	b.send(`form[action$="/resend"] button`, true)
	w.drive(time.Hour)
	b.wait(`document.querySelector('.document-status').innerText.includes('Aceptado')`)
	b.visit(documentAddress(lost.DocumentID))
	b.push("#xml-readable summary")
	b.wait(`document.querySelector('#xml-readable').open`)

	unknown := w.unknown("Comercial Demostración, SRL", 980)
	b.visit(documentAddress(unknown.DocumentID))
	b.reach("#as")
	for range 5 {
		if b.evaluate(`document.querySelector('#as').value === 'rejected'`) {
			break
		}
		b.press(kb.ArrowDown)
	}
	b.write("#evidence", "Oficina Virtual: no existe")
	b.send(`form[action$="/resolve"] button`, true)
	b.wait(`document.querySelector('.notice-good') && document.querySelector('.document-status').innerText.includes('Rechazado')`)
	b.wantForms()
}

// An accountant without a mouse issues an invoice with a mistake first, and exports it.
func TestIssuingWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b := e.openTab()
	b.signIn(e, store.RoleAccountant, e.taxpayer)
	b.visit(issueAddress)
	b.write(`[name="buyer.tax_id"]`, "199000021")
	b.write(`[name="buyer.legal_name"]`, "Ferretería El Sol, SRL")
	b.write(`[name="lines.0.description"]`, "Cemento gris, saco de 42.5 kg")
	b.write(`[name="lines.0.unit_price"]`, "450.00")
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a0531.00'`)
	b.push(`button[value="add_line"]`)
	b.wait(`document.activeElement.name === 'lines.1.description'`)
	b.push(`button[value="remove_line.1"]`)
	b.wait(`!document.querySelector('[name="lines.1.description"]') && document.activeElement.value === 'add_line'`)
	b.press(kb.Enter)
	b.wait(`document.activeElement.name === 'lines.1.description'`)
	b.press("Transporte")
	b.write(`[name="lines.1.unit_price"]`, "mil")
	b.send(`button[value="issue"]`, false)
	b.wait(`document.activeElement.name === 'lines.1.unit_price' && document.activeElement.getAttribute('aria-invalid') === 'true'`)
	for range 3 {
		b.press(kb.Backspace + kb.Delete)
	}
	b.press("1000")
	b.wait(`document.querySelector('#issue-total').innerText === 'RD$\u00a01,711.00'`)
	b.push(`aside button[value="preview"]`)
	b.send(`button[value="issue"]`, false)
	b.wait(`location.pathname.startsWith('/console/documents/') && location.pathname !== '/console/documents/new'`)
	if all := e.onlyInvoices(); len(all) != 1 || all[0].Total != "1711.00" {
		t.Errorf("the invoices are %+v", all)
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.o.Exports.Run(ctx) }()
	defer func() { stop(); <-ended }()
	b.visit(exportsAddress)
	b.write("#from", november11)
	b.write("#to", december12)
	b.reach("input[name=include]")
	b.press(" ")
	b.send("main form button.primary", false)
	b.wait(`document.querySelector('a[href$="/file"]')`)
	b.skip()
	b.reach(`a[href$="/file"]`)
	b.send(`form[action$="/delete"] button`, true)
	b.wait(`!document.querySelector('a[href$="/file"]')`)
	b.wantForms()
}

// authenticator returns the code that an authenticator program shows.
func authenticator(t *testing.T, secret string, at time.Time) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, at.Unix()/30)
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[len(sum)-1]&0x0f:])&0x7fffffff%1_000_000)
}

// send pushes a button, answers its question if it asks one, and waits for the next page.
func (b *tab) send(selector string, asks bool) {
	b.t.Helper()
	b.evaluate(`(window.pageBefore = true)`)
	b.push(selector)
	if asks {
		b.agree()
	}
	b.wait(`!window.pageBefore`)
}

// A person without a mouse sets a password, invites, changes and disables a colleague, and
// does everything on the page of the own account.
func TestPeopleWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, link, err := e.o.People.Create(t.Context(), people.Invitation{Name: "Ana Pérez", Email: "ana@example.com", Role: store.RoleOperator})
	e.must(err)
	b := e.openTab()
	b.open("/console/welcome/" + link.Reveal())
	b.write("#password", goodPassword)
	b.write("#password_again", goodPassword+kb.Enter)
	b.wait(`location.pathname === '/console/'`)

	// On a phone with a keyboard, the menu opens and leads on.
	b.do("phone", chromedp.EmulateViewport(390, 844))
	b.push(".menu-button")
	b.wait(`document.querySelector('.side').checkVisibility()`)
	b.push(`nav a[href="/console/users"]`)
	b.wait(`location.pathname === '/console/users'`)
	b.do("desktop", chromedp.EmulateViewport(1280, 900))

	b.skip()
	b.write("#name", "Luis Marte")
	b.write("#email", "luis@example.com")
	b.reach("input[name=taxpayer]")
	b.press(" ")
	b.send(`form[action="/console/users"] button[type=submit]`, false)
	b.wait(`document.querySelector('#link')`)
	b.skip()
	b.reach("#role")
	b.press(kb.ArrowDown)
	b.send(`form[action$="/role"] button`, false)
	b.wait(`document.querySelector('.notice-good') && document.querySelector('#role').value === 'developer'`)
	b.skip()
	b.send(`form[action$="/reset"] button`, true)
	b.wait(`document.querySelector('#link')`)
	b.skip()
	b.push(`form[action$="/disable"] button`)
	b.disagree(`form[action$="/disable"] button`)
	b.send(`form[action$="/disable"] button`, true)
	b.shows("La persona está inactiva")

	e.accountWithTheKeyboard(b)

	b.send(`form[action="/console/sign-out"] button`, false)
	b.wait(`location.pathname === '/console/sign-in'`)
	b.write("#email", "ana@example.com")
	b.write("#password", goodPassword+"!")
	b.send("main button[type=submit]", false)
	b.wait(`location.pathname === '/console/'`)
	b.wantForms()
}

// accountWithTheKeyboard does everything on the page of the account.
func (e *env) accountWithTheKeyboard(b *tab) {
	e.t.Helper()
	b.visit("/console/account")
	b.send(`form[action$="/begin"] button`, false)
	b.wait(`document.querySelector('svg.qr')`)
	secret, err := chromedp.Run(b, chromedp.Evaluate[string](`document.querySelector('#secret').value`))
	e.must(err)
	b.skip()
	b.write("#code", authenticator(e.t, secret, e.clock.Now()))
	b.send(`form[action$="/confirm"] button`, false)
	b.wait(`document.querySelector('.codes')`)
	b.visit("/console/account")
	b.push("#remove-factor summary")
	b.wait(`document.querySelector('#remove-factor').open`)
	b.write("#factor_password", goodPassword)
	b.send(`form[action$="/remove"] button`, true)
	b.wait(`document.querySelector('form[action$="/begin"]')`)

	b.skip()
	b.reach("#language")
	b.press(kb.ArrowDown)
	b.reach("#theme")
	b.press(kb.ArrowDown)
	b.send(`form[action$="/preferences"] button`, false)
	b.wait(`document.documentElement.dataset.theme === 'light' && document.documentElement.lang === 'es'`)
	b.skip()
	b.write("#password_now", goodPassword)
	b.write("#password", goodPassword+"!")
	b.write("#password_again", goodPassword+"!")
	b.send(`form[action$="/password"] button`, false)
	b.wait(`document.querySelector('.notice-good')`)

	other := e.browser()
	if got := other.post("/console/sign-in", "email", "ana@example.com", "password", goodPassword+"!"); got.StatusCode != 303 {
		e.t.Fatalf("the second session: %d", got.StatusCode)
	}
	b.visit("/console/account")
	b.wait(`document.querySelectorAll('form[action$="/end"]').length === 2`)
	b.send(`tr:not(:has(.badge)) form[action$="/end"] button`, false)
	b.wait(`document.querySelectorAll('form[action$="/end"]').length === 1`)
	if got := other.get("/console/"); got.StatusCode == 200 {
		e.t.Error("the ended session still opens pages")
	}
}
