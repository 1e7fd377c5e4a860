package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// request is one request for a page, with the person who sent it.
type request struct {
	*http.Request
	w        http.ResponseWriter
	console  *Console
	id       string
	language lang.Language
	page     *page // nil before it is found
	viewer   viewer
	session  store.UserSession
	body     capacity.Body  // of a form
	large    *capacity.Hold // while a large form is processed
}

// begin returns the request of a browser that is not identified yet.
func (c *Console) begin(w http.ResponseWriter, r *http.Request) *request {
	x := &request{Request: r, console: c, id: store.NewID(), viewer: viewer{environment: c.o.Environment}}
	x.w = &answering{w, x}
	x.language = lang.FromHeader(r.Header.Get("Accept-Language"), lang.Spanish)
	w.Header().Set("X-Request-Id", x.id)
	return x
}

// signedIn reports whether the request has a session.
func (x *request) signedIn() bool { return x.session.ID != "" }

// client returns the browser of the request.
func (x *request) client() people.Client {
	return people.Client{
		Environment: x.console.o.Environment, Address: x.console.o.Clients.Address(x.Request),
		Browser: x.UserAgent(), RequestID: x.id,
	}
}

// identify finds the session of the request. A request without one goes on without a
// person.
func (c *Console) identify(x *request) error {
	cookie, err := x.Cookie(c.cookieName(x.Request))
	if err != nil || cookie.Value == "" {
		return nil
	}
	user, session, err := c.o.People.Authenticate(x.Context(), people.ParseToken(cookie.Value), c.o.Environment)
	if errors.Is(err, people.ErrDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	x.viewer.user, x.session = user, session
	if chosen, ok := lang.Parse(user.Language); ok {
		x.language = chosen
	}
	x.Request = x.WithContext(audit.WithCaller(x.Context(), people.CallerOf(user, x.client())))
	return nil
}

// answering is the answer to a request. The request holds nothing while the browser reads
// it, because a browser may read slowly.
type answering struct {
	http.ResponseWriter
	x *request
}

func (a *answering) WriteHeader(status int) {
	a.x.release()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answering) Write(b []byte) (int, error) {
	a.x.release()
	return a.ResponseWriter.Write(b)
}

// Unwrap returns the writer, for http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// release gives back what the request holds of the capacity of the service.
func (x *request) release() {
	x.large.Release()
	x.body.Release()
}

// holder returns on whose account the request holds something. People of a taxpayer share
// what the taxpayer may hold with its API keys, and people who see all taxpayers share one
// account, so that many people of one taxpayer take nothing from others.
func (x *request) holder() capacity.Holder {
	h := capacity.Holder{Address: x.console.o.Clients.Address(x.Request)}
	if x.signedIn() {
		h.Credential, h.Taxpayer = "user "+x.viewer.user.ID, "people"
		if within := x.viewer.user.TaxpayerIDs; len(within) > 0 {
			h.Taxpayer = within[0]
		}
	}
	return h
}

// recheckAfter is how long a form may take to arrive before its session is checked again. A
// session that was ended meanwhile must not change anything.
const recheckAfter = time.Second

// readForm reads the form of the request, within the limits of the capacity.
func (x *request) readForm() (err error) {
	limit := x.page.maxBody
	if limit == 0 {
		limit = defaultMaxBody
	}
	began := x.console.o.Now()
	if x.body, err = x.console.o.Capacity.ReadBody(x.w, x.Request, x.holder(), limit); err == nil {
		x.large, err = x.console.o.Capacity.TakeLargeSlot(x.Context(), x.holder(), len(x.body.Bytes))
	}
	if full := (*capacity.FullError)(nil); errors.As(err, &full) {
		return errCrowded
	}
	if err != nil {
		return errBadRequest
	}
	if x.signedIn() && x.console.o.Now().Sub(began) >= recheckAfter {
		if err := x.recheck(); err != nil {
			return err
		}
	}
	x.Body = io.NopCloser(bytes.NewReader(x.body.Bytes))
	if x.ParseForm() != nil || !isText(x.PostForm) {
		return errBadRequest
	}
	return nil
}

// isText reports whether values are text that every engine can store and compare.
func isText(values url.Values) bool {
	for name, all := range values {
		for _, one := range append([]string{name}, all...) {
			if !utf8.ValidString(one) || strings.ContainsRune(one, 0) {
				return false
			}
		}
	}
	return true
}

// recheck finds the session of the request again, and checks the role.
func (x *request) recheck() error {
	x.viewer, x.session = viewer{environment: x.console.o.Environment}, store.UserSession{}
	if err := x.console.identify(x); err != nil {
		return err
	}
	switch {
	case x.page.public:
		return nil
	case !x.signedIn():
		return x.redirectInstead(signInAddress(x.Request))
	}
	return x.console.authorize(x)
}

// run calls the handler of the page.
func (x *request) run() error {
	if !isText(x.URL.Query()) {
		return errBadRequest
	}
	if x.signedIn() && !x.page.fragment {
		if err := x.console.o.People.RecordUse(x.Context(), x.session); err != nil {
			return err
		}
	}
	if x.page.changes() {
		if err := x.readForm(); err != nil {
			return err
		}
	}
	return x.page.handle(x)
}

// text returns a text of the catalogue in the language of the person.
func (x *request) text(key string, args ...any) string {
	text, err := x.console.texts.Text(x.language, key, args...)
	if err != nil {
		x.console.o.Log.Error("A page of the console names a text that does not exist.", "error", err.Error())
		return key
	}
	return text
}

// has reports whether there is a text with a key.
func (x *request) has(key string) bool { return !x.console.texts[key].IsZero() }

// redirect sends the browser to another page of the console.
func (x *request) redirect(address string) error {
	http.Redirect(x.w, x.Request, x.console.basePath+address, http.StatusSeeOther) //nolint:gosec // afterSignIn has checked what a client names
	return nil
}

// redirectInstead is redirect for a request that must not go on.
func (x *request) redirectInstead(address string) error { return redirectError(address) }

// done sends the browser to another page, which shows the text "done.KEY" once.
func (x *request) done(address, key string) error {
	return x.redirect(address + "?done=" + url.QueryEscape(key))
}

// render writes a page: a template inside the layout. title is shown in the heading of the
// browser.
func (x *request) render(name, title string, data any) error {
	return x.renderStatus(http.StatusOK, name, title, data)
}

// renderStatus is render with another status than 200.
func (x *request) renderStatus(status int, name, title string, data any) error {
	v := x.view(title, data)
	content, err := x.execute(name, v)
	if err != nil {
		return err
	}
	v.Content = content
	whole, err := x.execute("layout", v)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	x.w.WriteHeader(status)
	_, _ = x.w.Write([]byte(x.console.below(whole))) // if it fails, the browser has left
	return nil
}

// execute executes a template in the language of the person.
func (x *request) execute(name string, v *view) (template.HTML, error) {
	var b strings.Builder
	err := x.console.templates[x.language].ExecuteTemplate(&b, name, v)
	return template.HTML(b.String()), err //nolint:gosec // the result of html/template
}

// fragment writes a template without the layout, for an element that updates itself. An
// unchanged fragment is answered with 304.
func (x *request) fragment(name string, data any) error {
	f, err := x.executeFragment(name, data)
	if err != nil {
		return err
	}
	x.writeFragment(f)
	return nil
}

// rendered is a fragment with its entity tag.
type rendered struct {
	content template.HTML
	tag     string
}

// writeFragment writes a fragment, or 304 when the browser has it.
func (x *request) writeFragment(f rendered) {
	x.w.Header().Set("ETag", f.tag)
	if x.Header.Get("If-None-Match") == f.tag {
		x.w.WriteHeader(http.StatusNotModified)
		return
	}
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = x.w.Write([]byte(x.console.below(f.content))) // if it fails, the browser has left
}

// live returns an element whose content is a template, and which the browser fetches again
// from an address of the table every 2 seconds.
func (x *request) live(address, name string, data any) (template.HTML, error) {
	f, err := x.executeFragment(name, data)
	if err != nil {
		return "", err
	}
	return f.element(address), nil
}

// element returns the fragment in an element that the browser fetches again.
func (f rendered) element(address string) template.HTML {
	return template.HTML(`<div data-live="` + template.HTMLEscapeString(address) + `" data-etag="` + //nolint:gosec // escaped
		template.HTMLEscapeString(f.tag) + `">` + string(f.content) + `</div>`)
}

func (x *request) executeFragment(name string, data any) (rendered, error) {
	content, err := x.execute(name, x.view("", data))
	if err != nil {
		return rendered{}, err
	}
	sum := sha256.Sum256([]byte(content))
	return rendered{content, `"` + hex.EncodeToString(sum[:16]) + `"`}, nil
}
