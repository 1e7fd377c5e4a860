package console

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Every answer has the same security headers: pages, errors, redirects, refusals and
// files.
func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, _ := e.signedIn(store.RoleOperator)
	answers := map[string]answer{
		"page": operator.get("/console/users"), "404": operator.get("/console/nothing"), "403": crossSite(operator),
		"405": operator.send(http.MethodPut, "/console/users", nil), "redirect": e.browser().get("/console/users"), "asset 404": operator.get("/console/assets/x"),
		"sign-in": e.browser().get("/console/sign-in"), "denied": e.browser().post("/console/sign-in", "email", "x@example.com", "password", "x"),
		"link": e.browser().get("/console/welcome/none"), "422": operator.post("/console/users", "name", ""),
	}
	for name, address := range e.assets.byName {
		answers["asset "+name] = e.browser().get(address)
	}
	home := e.browser()
	home.handler = Home("http://console.example", http.NotFoundHandler())
	answers["home"] = home.get("/")
	for name, got := range answers {
		for header, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
				"connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		} {
			if got.Header.Get(header) != want {
				t.Errorf("%s: %s is %q", name, header, got.Header.Get(header))
			}
		}
		want := "no-store"
		if strings.HasPrefix(name, "asset ") && name != "asset 404" {
			want = "public, max-age=31536000, immutable"
			if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") == "" {
				t.Errorf("%s: %d %s", name, got.StatusCode, got.Header.Get("Content-Type"))
			}
		}
		if got.Header.Get("Cache-Control") != want {
			t.Errorf("%s: Cache-Control is %q, want %q", name, got.Header.Get("Cache-Control"), want)
		}
	}
}

func crossSite(b *browser) answer {
	other := *b
	other.header = b.header.Clone()
	other.header.Set("Sec-Fetch-Site", "cross-site")
	return other.post("/console/account/preferences", "language", "en")
}

// A form of another site changes nothing. With Referrer-Policy: no-referrer a browser sends
// Origin: null, and Sec-Fetch-Site decides.
func TestCrossSiteFormsAreRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, test := range []struct {
		site, origin string
		want         int
	}{
		{"same-origin", "null", http.StatusSeeOther},
		{"none", "null", http.StatusSeeOther},
		{"cross-site", "null", http.StatusForbidden},
		{"same-site", "null", http.StatusForbidden},
		{"cross-site", "http://example.com", http.StatusForbidden},
		{"", "https://evil.example", http.StatusForbidden},
		{"", "null", http.StatusForbidden},
		{"", "http://example.com", http.StatusSeeOther},
	} {
		b, u := e.signedIn(store.RoleAuditor)
		b.header.Set("Sec-Fetch-Site", test.site)
		b.header.Set("Origin", test.origin)
		if test.site == "" {
			b.header.Del("Sec-Fetch-Site")
		}
		got := b.post("/console/account/preferences", "language", "en")
		if got.StatusCode != test.want {
			t.Errorf("Sec-Fetch-Site %q, Origin %q: %d, want %d", test.site, test.origin, got.StatusCode, test.want)
		}
		stored, err := e.o.Store.User(t.Context(), u.ID)
		e.must(err)
		if changed := stored.Language == "en"; changed != (test.want == http.StatusSeeOther) {
			t.Errorf("Sec-Fetch-Site %q, Origin %q: the change was made: %v", test.site, test.origin, changed)
		}
	}
}

func TestCookieOfASession(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		base   string
		tls    bool
		cookie string
	}{
		{"http", "http://console.example", false, "fiscalhub_session"},
		{"TLS", "http://console.example", true, "__Host-fiscalhub_session"},
		{"TLS of a proxy", "https://console.example", false, "__Host-fiscalhub_session"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, func(o *Options) { o.BaseURL = test.base })
			_, token := e.invite(store.RoleOperator)
			b := e.browser()
			b.tls = test.tls
			got := b.post("/console/welcome/"+token.Reveal(), "password", goodPassword, "password_again", goodPassword)
			line := got.Header.Get("Set-Cookie")
			if len(got.Cookies()) != 1 || got.Cookies()[0].Name != test.cookie {
				t.Fatalf("Set-Cookie: %s", line)
			}
			c := got.Cookies()[0]
			secure := test.cookie != "fiscalhub_session"
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure != secure || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
				t.Errorf("Set-Cookie: %s", line)
			}
			wantAnswer(t, "with the cookie", b.get("/console/"), http.StatusOK)
			out := b.post("/console/sign-out")
			if len(out.Cookies()) != 1 || out.Cookies()[0].MaxAge >= 0 || out.Cookies()[0].Name != test.cookie {
				t.Errorf("sign-out: %s", out.Header.Get("Set-Cookie"))
			}
			b.cookies[test.cookie] = c.Value
			wantAnswer(t, "with the cookie of a session that has ended", b.get("/console/"), http.StatusSeeOther)
		})
	}
}

// No page has a script or a style inside, or names another host. Contents that try to be
// HTML are text.
func TestPagesHaveNoInlineCodeAndEscapeContents(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>`
	e.addTaxpayer("199000021", evil)
	operator, self := e.signedIn(store.RoleOperator)
	evilUser, token, err := e.o.People.Create(t.Context(), people.Invitation{Name: evil, Email: "evil@example.com", Role: store.RoleAccountant, TaxpayerIDs: []string{e.taxpayer}})
	e.must(err)
	operator.header.Set("User-Agent", evil)
	pages := map[string]answer{
		"sign-in": e.browser().get("/console/sign-in?next=" + url.QueryEscape(evil)), "welcome": e.browser().get("/console/welcome/" + token.Reveal()),
		"denied": e.browser().post("/console/sign-in", "email", evil, "password", evil), "user": operator.get("/console/users/" + evilUser.ID),
		"wrong user": operator.post("/console/users", "name", evil, "email", evil, "role", evil), "404": operator.get("/console/" + url.PathEscape(evil)),
		"audit": operator.get("/console/audit?verify=1&actor=&object=" + url.QueryEscape(evil)), "enrol": operator.post("/console/account/second-factor/begin"),
		"reset": operator.post("/console/users/" + evilUser.ID + "/reset"), "done": operator.get("/console/account?done=" + url.QueryEscape(evil)),
	}
	for _, p := range e.pages {
		if !p.named() && !p.changes() && !p.public && !p.fragment && !strings.HasSuffix(p.address, ".csv") {
			pages[p.address] = operator.get(p.address)
		}
	}
	for name, got := range pages {
		checkPage(t, name, got)
	}
	if !strings.Contains(pages["/console/users"].body, "&lt;script&gt;alert(1)") {
		t.Error("the page of people does not show the name")
	}
	if self.ID == "" || !strings.Contains(pages["/console/account"].body, `class="qr"`) {
		t.Error("the account does not show the QR code")
	}
}

// checkPage parses a page and looks for what the policy of the console forbids.
func checkPage(t *testing.T, name string, got answer) {
	t.Helper()
	if got.StatusCode/100 == 3 {
		return
	}
	root, err := html.Parse(strings.NewReader(got.body))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "style" || n.Data == "script" && n.FirstChild != nil {
			t.Errorf("%s has an inline %s", name, n.Data)
		}
		if n.Data == "img" && strings.Contains(got.body, "onerror=alert") && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "onerror" }) {
			t.Errorf("%s has an element of the contents", name)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has the attribute %s", name, a.Key)
			case (a.Key == "src" || a.Key == "href" || a.Key == "action") && (strings.Contains(a.Val, "://") || strings.HasPrefix(strings.ToLower(a.Val), "javascript:")):
				t.Errorf("%s refers to %s", name, a.Val)
			case a.Key == "id":
				if ids[a.Val] {
					t.Errorf("%s has the id %s twice", name, a.Val)
				}
				ids[a.Val] = true
			}
		}
	}
	if !strings.Contains(got.body, `<html lang="`) || !strings.Contains(got.body, `class="skip"`) {
		t.Errorf("%s has no language or no skip link", name)
	}
}

// A person comes back to the page that asked for a sign-in, and never to another site.
func TestAfterSignIn(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/console/users?x=1": "/console/users?x=1", "": "/console/", "/": "/console/", "//evil.example/console/": "/console/",
		"https://evil.example/console/": "/console/", "/console/\\evil.example": "/console/", "/console//evil.example": "/console/",
		"/console/sign-out": "/console/", "/console/sign-in": "/console/", "javascript:alert(1)": "/console/", "/v1/x": "/console/",
	} {
		if got := afterSignIn(next); got != want {
			t.Errorf("afterSignIn(%q) = %q, want %q", next, got, want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/users?q=a&b", nil)
	u, err := url.Parse(signInAddress(r))
	if err != nil || u.Query().Get("next") != "/console/users?q=a&b" {
		t.Errorf("sign-in address: %v, %v", u, err)
	}
}

// A link signs a person in, so it must not reach the log, whatever fails.
func TestALinkIsNotLoggedWhenThePageFails(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := newEnv(t, func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	_, link := e.invite(store.RoleOperator)
	_, err := storetest.OpenSQL(t, e.address).ExecContext(t.Context(), `DROP TABLE user_links`)
	e.must(err)
	if got := e.browser().get("/console/welcome/" + link.Reveal()); got.StatusCode < http.StatusInternalServerError {
		t.Fatalf("answer %d without the table of links", got.StatusCode)
	}
	if text := log.String(); !strings.Contains(text, "/console/welcome/") || strings.Contains(text, link.Reveal()) {
		t.Errorf("the log is %s", text)
	}
}

// What is no text is refused on every engine, in a query and in a form. PostgreSQL stores
// and compares neither the character 0 nor bytes that are not UTF-8.
func TestOnlyTextIsTaken(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		b, _ := w.signedIn(store.RoleOperator)
		for _, bad := range []string{"\xff", "\x00", "a\xed\xa0\x80"} {
			for _, page := range []string{issueAddress + "?copy=", issueAddress + "?template=", issueAddress + "?taxpayer=", documentsAddress + "?q=", documentsAddress + "?taxpayer=", "/console/audit?object="} {
				if got := b.get(page + url.QueryEscape(bad)); got.StatusCode != http.StatusBadRequest {
					t.Errorf("%s%q: %d", page, bad, got.StatusCode)
				}
			}
			for _, name := range []string{"copy", "taxpayer", "external_id"} {
				fields := w.liveFields(name, bad)
				if got := b.send(http.MethodPost, issueAddress, fields); got.StatusCode != http.StatusBadRequest {
					t.Errorf("%s %q: %d", name, bad, got.StatusCode)
				}
			}
			if got := w.browser().send(http.MethodPost, "/console/sign-in", url.Values{"email": {bad}, "password": {"x"}}); got.StatusCode != http.StatusBadRequest {
				t.Errorf("the email %q: %d", bad, got.StatusCode)
			}
		}
	})
}
