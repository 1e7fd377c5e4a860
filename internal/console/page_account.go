package console

import (
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"rsc.io/qr"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const accountAddress = "/console/account"

func (c *Console) accountPages() []page {
	all := everyone()
	pages := []page{
		get(accountAddress, all, c.showAccount),
		post(accountAddress+"/preferences", all, all, c.savePreferences),
		post(accountAddress+"/password", all, all, c.changePassword),
		post(accountAddress+"/sessions/{id}/end", all, all, c.endSession),
		post(accountAddress+"/second-factor/begin", all, all, c.beginSecondFactor),
		post(accountAddress+"/second-factor/confirm", all, all, c.confirmSecondFactor),
		post(accountAddress+"/second-factor/remove", all, all, c.removeSecondFactor),
	}
	for i := range pages {
		pages[i].own = true
	}
	return pages
}

// accountView is the data of the page of the own account. Each form has its own errors.
type accountView struct {
	User          store.User
	Preferences   *form
	Form          *form // of the password
	FactorForm    *form
	Sessions      []sessionView
	MustEnrol     bool // an operator needs a second factor before anything else
	Enrolment     *people.Enrolment
	QR            template.HTML
	RecoveryCodes []string // shown once
	CodesLeft     int
}

// sessionView is a session of the person.
type sessionView struct {
	store.UserSession
	Browser string
	Current bool
}

func (c *Console) showAccount(x *request) error { return x.renderAccount(http.StatusOK, accountView{}) }

// renderAccount shows the account. Forms that v does not have begin with stored values.
func (x *request) renderAccount(status int, v accountView) error {
	c := x.console
	u, err := c.o.Store.User(x.Context(), x.viewer.user.ID)
	if err != nil {
		return err
	}
	x.viewer.user = u
	v.User, v.MustEnrol = u, c.lacksSecondFactor(x)
	v.Preferences = newForm(url.Values{"language": {u.Language}, "theme": {u.Theme}})
	if v.Form == nil {
		v.Form = newForm(nil)
	}
	if v.FactorForm == nil {
		v.FactorForm = newForm(nil)
	}
	sessions, err := c.o.People.Sessions(x.Context(), u.ID)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		v.Sessions = append(v.Sessions, sessionView{s, browserName(s.Browser), s.ID == x.session.ID})
	}
	enrolment, pending, err := c.o.People.PendingSecondFactor(u)
	if err != nil {
		return err
	}
	if pending {
		v.Enrolment = &enrolment
		if v.QR, err = qrCode(enrolment.Address, x.text("account.qr")); err != nil {
			return err
		}
	}
	if v.CodesLeft, err = c.o.People.RecoveryCodesLeft(x.Context(), u.ID); err != nil {
		return err
	}
	return x.renderStatus(status, "account", x.text("word.my_account"), v)
}

func (c *Console) savePreferences(x *request) error {
	f := x.sentForm()
	if err := c.o.People.SetPreferences(x.Context(), x.viewer.user.ID, f.Value("language"), f.Value("theme")); err != nil {
		if errors.Is(err, store.ErrUnavailable) {
			return err
		}
		return errBadRequest
	}
	return x.done(accountAddress, "account.preferences")
}

func (c *Console) changePassword(x *request) error {
	f := newForm(nil)
	x.checkNewPassword(f)
	if f.ok() {
		err := c.o.People.ChangePassword(x.Context(), x.viewer.user, x.session, x.PostFormValue("password_now"), x.PostFormValue("password"))
		if err := x.passwordError(f, "password_now", err); err != nil {
			return err
		}
	}
	if !f.ok() {
		return x.renderAccount(http.StatusUnprocessableEntity, accountView{Form: f})
	}
	return x.done(accountAddress, "account.password")
}

// passwordError records the error of a wrong password at its field. It returns any other
// error.
func (x *request) passwordError(f *form, field string, err error) error {
	var limited *people.LimitedError
	switch {
	case errors.Is(err, people.ErrDenied):
		f.fail(field, x.text("account.wrong_password"))
	case errors.As(err, &limited):
		f.fail(field, x.text("sign_in.limited", int(limited.RetryAfter.Seconds())+1))
	default:
		return err
	}
	return nil
}

// endSession ends one of the person's sessions. The end of the own session signs out.
func (c *Console) endSession(x *request) error {
	id := x.PathValue("id")
	if err := c.o.People.EndSession(x.Context(), x.viewer.user.ID, id); err != nil {
		return err
	}
	if id == x.session.ID {
		x.setCookie(people.Token{})
		return x.redirect("/console/sign-in")
	}
	return x.done(accountAddress, "account.session")
}

func (c *Console) beginSecondFactor(x *request) error {
	err := c.o.People.BeginSecondFactor(x.Context(), x.viewer.user)
	if err != nil && !errors.Is(err, people.ErrSecondFactor) {
		return err
	}
	return x.redirect(accountAddress + "#second-factor")
}

// confirmSecondFactor puts the second factor in force, and shows recovery codes once.
func (c *Console) confirmSecondFactor(x *request) error {
	f := newForm(nil)
	codes, err := c.o.People.ConfirmSecondFactor(x.Context(), x.viewer.user, x.session, x.PostFormValue("code"))
	switch {
	case errors.Is(err, people.ErrSecondFactor):
		return x.redirect(accountAddress + "#second-factor")
	case errors.Is(err, people.ErrDenied):
		f.fail("code", x.text("account.wrong_code"))
		return x.renderAccount(http.StatusUnprocessableEntity, accountView{FactorForm: f})
	case err != nil:
		return err
	}
	return x.renderAccount(http.StatusOK, accountView{RecoveryCodes: codes})
}

func (c *Console) removeSecondFactor(x *request) error {
	f := newForm(nil)
	err := c.o.People.RemoveSecondFactor(x.Context(), x.viewer.user, x.PostFormValue("factor_password"))
	if err := x.passwordError(f, "factor_password", err); err != nil {
		return err
	}
	if !f.ok() {
		return x.renderAccount(http.StatusUnprocessableEntity, accountView{FactorForm: f})
	}
	return x.done(accountAddress, "account.factor_removed")
}

// browserName returns a short name of a browser and its system, from the header that the
// browser sends. It returns the beginning of an unknown header.
func browserName(agent string) string {
	first := func(pairs ...[2]string) string {
		for _, pair := range pairs {
			if strings.Contains(agent, pair[0]) {
				return pair[1]
			}
		}
		return ""
	}
	browser := first([2]string{"Edg/", "Edge"}, [2]string{"OPR/", "Opera"}, [2]string{"Firefox/", "Firefox"}, [2]string{"SamsungBrowser/", "Samsung Internet"},
		[2]string{"Chrome/", "Chrome"}, [2]string{"CriOS/", "Chrome"}, [2]string{"FxiOS/", "Firefox"}, [2]string{"Safari/", "Safari"}, [2]string{"curl/", "curl"})
	system := first([2]string{"Android", "Android"}, [2]string{"iPhone", "iPhone"}, [2]string{"iPad", "iPad"}, [2]string{"Windows", "Windows"},
		[2]string{"Mac OS X", "macOS"}, [2]string{"CrOS", "ChromeOS"}, [2]string{"Linux", "Linux"})
	switch {
	case browser == "" && agent == "":
		return "–"
	case browser == "":
		return agent[:min(len(agent), 40)]
	case system == "":
		return browser
	}
	return browser + " · " + system
}

// qrCode returns a QR code as a picture, black on white in every theme.
func qrCode(text, label string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", fmt.Errorf("console: QR code: %w", err)
	}
	const quiet = 4 // modules around the code, which a reader needs
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	size := code.Size + 2*quiet
	return template.HTML(fmt.Sprintf(`<svg class="qr" viewBox="0 0 %[1]d %[1]d" role="img" aria-label="%[2]s" shape-rendering="crispEdges">`+ //nolint:gosec // escaped
		`<rect width="%[1]d" height="%[1]d" fill="#fff"/><path fill="#000" d="%[3]s"/></svg>`, size, template.HTMLEscapeString(label), path.String())), nil
}
