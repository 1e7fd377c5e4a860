package console

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
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
