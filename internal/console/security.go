package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/people"
)

const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setSecurityHeaders sets the headers of every answer. Everything is personal unless a
// handler says otherwise.
func setSecurityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

const (
	cookiePlain  = "fiscalhub_session"
	cookieSecure = "__Host-fiscalhub_session"
)

// secure reports whether the browser reaches the console over TLS: with this server, or
// with a proxy before it.
func (c *Console) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(c.o.BaseURL, "https://")
}

func (c *Console) cookieName(r *http.Request) string {
	if c.secure(r) {
		return cookieSecure
	}
	return cookiePlain
}

// setCookie gives the browser its session; an empty token takes the session away.
func (x *request) setCookie(token people.Token) {
	secure := x.console.secure(x.Request)
	cookie := &http.Cookie{ //nolint:gosec // Secure whenever the browser uses TLS
		Name: x.console.cookieName(x.Request), Value: token.Reveal(), Path: "/",
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
	if token == (people.Token{}) {
		cookie.MaxAge = -1
	}
	http.SetCookie(x.w, cookie)
}

// signInAddress returns the address of the sign-in page, which sends the person back to
// the page of the request.
func signInAddress(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.Path == "/console/" {
		return "/console/sign-in"
	}
	return "/console/sign-in?next=" + url.QueryEscape(r.URL.RequestURI())
}

// afterSignIn returns the address of a page of the console that next names, and the first
// page when it names another place.
func afterSignIn(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/console/") ||
		strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(u.Path, "/console/sign-") || strings.Contains(u.Path, "//") {
		return "/console/"
	}
	return next
}
