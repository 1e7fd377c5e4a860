package console

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// tab is a page in a real browser, which can connect only to this machine.
type tab struct {
	context.Context //nolint:containedctx // chromedp keeps the browser in the context
	t               *testing.T
	server          *httptest.Server
}

func (e *env) openTab() *tab {
	e.t.Helper()
	const path = "/usr/bin/chromium"
	if _, err := exec.LookPath(path); err != nil {
		if os.Getenv("CI") != "" {
			e.t.Fatalf("CI needs Chromium: %v", err)
		}
		e.t.Skipf("SKIPPED: Chromium is not installed: %v", err)
	}
	server := httptest.NewServer(e.Console)
	e.t.Cleanup(server.Close)
	ctx, cancel := chromedp.NewExecAllocator(e.t.Context(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("accept-lang", "es-DO,es"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("hide-scrollbars", true),
		chromedp.UserDataDir(e.t.TempDir()), chromedp.WindowSize(1280, 900))
	e.t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	e.t.Cleanup(cancel)
	// The first call starts the browser and must not carry a deadline.
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	e.t.Cleanup(cancel)
	return &tab{ctx, e.t, server}
}

func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b *tab) open(path string) { b.t.Helper(); b.do(path, chromedp.Navigate(b.server.URL+path)) }

// signIn opens the link of a person and sets the password.
func (b *tab) signIn(e *env, role store.Role, taxpayers ...string) store.User {
	b.t.Helper()
	u, link := e.invite(role, taxpayers...)
	b.open("/console/welcome/" + link.Reveal())
	b.fill("#password", goodPassword)
	b.fill("#password_again", goodPassword+kb.Enter)
	b.wait(`location.pathname === '/console/'`)
	return u
}

// fill types a text into a field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(selector, chromedp.SendKeys(selector, text))
}

// click clicks, and answers yes to a question.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.evaluate(`(window.confirm = () => true, true)`)
	b.do(selector, chromedp.Click(selector))
}

func (b *tab) evaluate(expression string) bool {
	b.t.Helper()
	got, err := chromedp.Run(b, chromedp.Evaluate[bool](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// wait fails the test unless the expression becomes true in the page.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b, time.Minute)
	defer cancel()
	for {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === 'complete' && !!(`+expression+`)`))
		switch {
		case err == nil && got:
			return
		case ctx.Err() != nil:
			text, _ := chromedp.Run(b, chromedp.Evaluate[string](`location.href + ' ' + document.body.innerText`))
			b.t.Fatalf("%s is not true in: %.600s", expression, text)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// picture checks that everybody can use the page. It also writes pictures of it at two
// widths into the folder FISCALHUB_PICTURES, for a person to look at.
func (b *tab) picture(name string) {
	b.t.Helper()
	b.accessible(name)
	dir := os.Getenv("FISCALHUB_PICTURES")
	if dir == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		b.do("size", chromedp.EmulateViewport(width, 900))
		got, err := chromedp.Run(b, chromedp.FullScreenshot(100))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, width)), got, 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.do("size", chromedp.EmulateViewport(1280, 900))
}

// A person opens the link, chooses a password, invites a colleague, sets up a second
// factor, signs out and signs in again, all in a real browser.
func TestAPersonInABrowser(t *testing.T) {
	e := newEnv(t)
	e.addTaxpayer("199000102", "Comercial Demostración, SRL")
	u, link, err := e.people.Create(t.Context(), people.Invitation{Name: "Ana Pérez", Email: "ana@example.com", Role: store.RoleOperator})
	e.must(err)
	for i, role := range []store.Role{store.RoleAuditor, store.RoleAccountant, store.RoleDeveloper} {
		b, made := e.signedIn(role, e.taxpayer)
		if i == 2 {
			_, err := e.people.Disable(t.Context(), made.ID)
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
	b.click("button.danger")
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
	e.must(e.people.SetPreferences(t.Context(), u.ID, "en", ""))
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

// An element updates itself without a reload, keeps the focus, and reloads the page when
// the session has ended.
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
	e.addLive("/console/test-live", func(x *request) error { return x.fragment("test-live", shown.Load()) })
	e.addLive("/console/test-page", func(x *request) error {
		element, err := x.live("/console/test-live", "test-live", shown.Load())
		if err != nil {
			return err
		}
		return x.render("test-page", "test", element)
	})
	u, link := e.invite(store.RoleAuditor)
	b := e.openTab()
	b.open("/console/welcome/" + link.Reveal())
	b.fill("#password", goodPassword)
	b.fill("#password_again", goodPassword+kb.Enter)
	b.wait(`location.pathname === '/console/'`)
	b.open("/console/test-page")
	b.wait(`document.querySelector('#link').innerText === 'uno'`)
	b.evaluate(`(window.mark = 1, document.querySelector('#link').focus(), true)`)
	shown.Store("dos")
	b.wait(`document.querySelector('#link').innerText === 'dos' && window.mark === 1 && document.activeElement.id === 'link'`)
	_, err := e.people.Disable(t.Context(), u.ID)
	e.must(err)
	b.wait(`location.pathname === '/console/sign-in'`)
}
