package console

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

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
