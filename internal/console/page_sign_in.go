package console

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func (c *Console) signInPages() []page {
	return []page{
		{method: http.MethodGet, address: "/console/sign-in", public: true, handle: c.showSignIn},
		{method: http.MethodPost, address: "/console/sign-in", public: true, handle: c.signIn},
		{method: http.MethodPost, address: "/console/sign-out", see: everyone(), act: everyone(), own: true, handle: c.signOut},
		{method: http.MethodGet, address: "/console/welcome/{token}", public: true, handle: c.showWelcome},
		{method: http.MethodPost, address: "/console/welcome/{token}", public: true, handle: c.welcome},
	}
}

// signInView is the data of the sign-in page.
type signInView struct {
	Form *form
	Next string
}

func (c *Console) showSignIn(x *request) error {
	if x.signedIn() {
		return x.redirect(afterSignIn(x.URL.Query().Get("next")))
	}
	return x.render("sign-in", x.text("sign_in.title"), signInView{newForm(nil), x.URL.Query().Get("next")})
}

// signIn starts a session. The page says the same for an unknown account, a wrong password
// and a wrong code.
func (c *Console) signIn(x *request) error {
	in := people.Credentials{Email: x.PostFormValue("email"), Password: x.PostFormValue("password"), Code: x.PostFormValue("code")}
	token, err := c.o.People.SignIn(x.Context(), in, x.client())
	form := newForm(url.Values{"email": {in.Email}})
	view := signInView{form, x.PostFormValue("next")}
	var limited *people.LimitedError
	switch {
	case err == nil:
		x.setCookie(token)
		return x.redirect(afterSignIn(view.Next))
	case errors.As(err, &limited):
		if limited.Counted {
			c.reportLimited(x, in.Email, limited.Account)
		}
		seconds := int(math.Ceil(limited.RetryAfter.Seconds()))
		x.w.Header().Set("Retry-After", strconv.Itoa(seconds))
		form.fail("", x.text("sign_in.limited", seconds))
		return x.renderStatus(http.StatusTooManyRequests, "sign-in", x.text("sign_in.title"), view)
	case errors.Is(err, people.ErrDenied):
		c.o.Log.Warn("A sign-in to the console failed. After five failures in a minute the service refuses more from the same account or address.",
			"address", x.client().Address, "request_id", x.id)
		form.fail("", x.text("sign_in.denied"))
		return x.renderStatus(http.StatusUnauthorized, "sign-in", x.text("sign_in.title"), view)
	}
	return err
}

// reportLimited puts refused sign-ins into the log. Guesses at an account are put into the
// audit log too, after the answer: sign-ins that are refused because of their address may have
// been guesses at other accounts.
func (c *Console) reportLimited(x *request, email string, account bool) {
	client := x.client()
	c.o.Log.Warn("The service refuses sign-ins to the console for a minute: five have failed.", "address", client.Address, "request_id", x.id)
	if account {
		c.o.Pipeline.Journal().Add(func(ctx context.Context, tx *store.Tx) error { return c.o.People.RecordLimited(ctx, tx, email, client) })
	}
}

// signOut ends the session of the browser, on every node at once.
func (c *Console) signOut(x *request) error {
	if err := c.o.People.EndSession(x.Context(), x.viewer.user.ID, x.session.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	x.setCookie(people.Token{})
	return x.redirect("/console/sign-in")
}

// welcomeView is the data of the page that sets a password.
type welcomeView struct {
	Form *form
	User store.User
}

func (c *Console) showWelcome(x *request) error {
	u, err := c.o.People.Invited(x.Context(), people.ParseToken(x.PathValue("token")))
	if err != nil {
		return err
	}
	return x.render("welcome", x.text("welcome.title"), welcomeView{newForm(nil), u})
}

// welcome sets the password of the person with a link, and signs the person in.
func (c *Console) welcome(x *request) error {
	link := people.ParseToken(x.PathValue("token"))
	u, err := c.o.People.Invited(x.Context(), link)
	if err != nil {
		return err
	}
	form := newForm(nil)
	x.checkNewPassword(form)
	if !form.ok() {
		return x.renderStatus(http.StatusUnprocessableEntity, "welcome", x.text("welcome.title"), welcomeView{form, u})
	}
	token, err := c.o.People.Welcome(x.Context(), link, x.PostFormValue("password"), x.client())
	switch {
	case err != nil:
		return err
	case token == people.Token{}:
		return x.redirect("/console/sign-in")
	}
	x.setCookie(token)
	return x.redirect("/console/")
}

// checkNewPassword checks the fields password and password_again.
func (x *request) checkNewPassword(form *form) {
	password := x.PostFormValue("password")
	switch err := people.CheckPassword(password); {
	case errors.Is(err, people.ErrPasswordShort):
		form.fail("password", x.text("password.short", people.MinPassword))
	case errors.Is(err, people.ErrPasswordCommon):
		form.fail("password", x.text("password.common"))
	case err != nil:
		form.fail("password", x.text("password.long"))
	case password != x.PostFormValue("password_again"):
		form.fail("password_again", x.text("password.different"))
	}
}
