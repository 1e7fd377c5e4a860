package console

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// example returns an address of a page, with the id of nothing in the place of parameters.
func (p page) example() string {
	parts := strings.Split(p.address, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = "0192c7d2-0000-7000-8000-00000000dead"
		}
	}
	return strings.Join(parts, "/")
}

// named reports whether the address names one object.
func (p page) named() bool { return strings.Contains(p.address, "{") }

// Every page answers every role as the table says: 404 for a page that the role may not
// see, 403 for a form that it may not send, and the sign-in page for a stranger.
func TestEveryPageAnswersEveryRole(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	browsers := map[store.Role]*browser{}
	for _, role := range store.Roles() {
		browsers[role], _ = e.signedIn(role, e.taxpayer)
	}
	for _, p := range e.pages {
		address := p.example()
		if p.public {
			continue
		}
		got := e.browser().send(p.method, address, nil)
		if to := got.Header.Get("Location"); got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/console/sign-in") {
			t.Errorf("%s %s answers a stranger with %d %s, want the sign-in page", p.method, address, got.StatusCode, to)
		}
		for role, b := range browsers {
			cookies := b.cookies["fiscalhub_session"]
			got := b.send(p.method, address, nil)
			b.cookies["fiscalhub_session"] = cookies // a page may sign out
			want := "2xx, 3xx or 422"
			ok := got.StatusCode < 400 || got.StatusCode == http.StatusUnprocessableEntity || p.named() && got.StatusCode == http.StatusNotFound ||
				p.changes() && got.StatusCode == http.StatusBadRequest
			switch {
			case !slices.Contains(p.see, role):
				want, ok = "404", got.StatusCode == http.StatusNotFound
			case p.changes() && !slices.Contains(p.act, role):
				want, ok = "403", got.StatusCode == http.StatusForbidden
			}
			if !ok {
				t.Errorf("%s %s answers %s with %d, want %s", p.method, address, role, got.StatusCode, want)
			}
			if p.address == "/console/sign-out" {
				browsers[role], _ = e.signedIn(role, e.taxpayer)
			}
		}
	}
}

// The table is complete: a page that changes something says who may act, and no role may
// act that may not see.
func TestTheTableOfPagesIsSound(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	seen := map[string]bool{}
	for _, p := range e.pages {
		name := p.method + " " + p.address
		if seen[name] {
			t.Errorf("%s is in the table twice", name)
		}
		seen[name] = true
		if !strings.HasPrefix(p.address, "/console/") || p.handle == nil {
			t.Errorf("%s has no address of the console or no handler", name)
		}
		if p.public != (len(p.see) == 0) {
			t.Errorf("%s: public is %v, and %v may see it", name, p.public, p.see)
		}
		if !p.public && p.changes() != (len(p.act) > 0) {
			t.Errorf("%s: %v may act", name, p.act)
		}
		for _, role := range p.act {
			if !slices.Contains(p.see, role) {
				t.Errorf("%s: %s may act but not see", name, role)
			}
			if role == store.RoleAuditor && !p.own {
				t.Errorf("%s: an auditor may act", name)
			}
		}
	}
}

// The navigation shows a role the pages that it may see, and marks the page it is on.
func TestNavigationFollowsTheRole(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, _ := e.signedIn(store.RoleOperator)
	accountant, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	got := operator.get("/console/users").body
	for _, want := range []string{`href="/console/users" aria-current="page"`, `href="/console/audit"`} {
		if !strings.Contains(got, want) {
			t.Errorf("an operator's page has no %s", want)
		}
	}
	if got := accountant.get("/console/").body; strings.Contains(got, "/console/users") || strings.Contains(got, "/console/audit") {
		t.Error("the page of an accountant has links to pages of operators")
	}
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, _ := e.signedIn(store.RoleOperator)
	for _, b := range []*browser{operator, e.browser()} {
		for _, address := range []string{"/console/nothing", "/console/users/", "/console//users", "/console/%75sers", "/console/users;x", "/console/assets/x/console.css", "/other"} {
			if got := b.get(address); got.StatusCode != http.StatusNotFound || !strings.Contains(got.body, "<h1>") {
				t.Errorf("%s answered %d, want a page with 404", address, got.StatusCode)
			}
		}
	}
	if got := operator.send(http.MethodDelete, "/console/users", nil); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE answered %d, Allow: %s", got.StatusCode, got.Header.Get("Allow"))
	}
	accountant, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	for _, test := range []struct {
		b               *browser
		method, address string
		want            int
	}{
		{accountant, http.MethodDelete, "/console/users", http.StatusNotFound},
		{accountant, http.MethodGet, "/console/keys/x/revoke", http.StatusNotFound},
		{accountant, http.MethodDelete, "/console/exports", http.StatusMethodNotAllowed},
		{e.browser(), http.MethodDelete, "/console/sign-in", http.StatusMethodNotAllowed},
		{e.browser(), http.MethodDelete, "/console/users", http.StatusSeeOther},
	} {
		if got := test.b.send(test.method, test.address, nil); got.StatusCode != test.want {
			t.Errorf("%s %s answered %d, want %d", test.method, test.address, got.StatusCode, test.want)
		}
	}
	for _, address := range []string{"/", "/console"} {
		if got := operator.get(address); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/console/" {
			t.Errorf("%s answered %d to %s", address, got.StatusCode, got.Header.Get("Location"))
		}
	}
	wantAnswer(t, "HEAD", operator.send(http.MethodHead, "/console/users", nil), http.StatusOK)
}

// Home sends only browsers that open / to the console.
func TestHomeRedirectsBrowsersOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, test := range []struct {
		method, path, accept string
		want                 int
	}{
		{"GET", "/", "text/html,application/xhtml+xml;q=0.9", 303},
		{"HEAD", "/", "text/html", 303},
		{"GET", "/", "application/json", 418},
		{"GET", "/", "*/*", 418},
		{"GET", "/", "", 418},
		{"POST", "/", "text/html", 418},
		{"GET", "/v1/openapi.json", "text/html", 418},
	} {
		b := e.browser()
		b.handler = Home("http://console.example", next)
		b.header.Set("Accept", test.accept)
		if got := b.send(test.method, test.path, nil); got.StatusCode != test.want {
			t.Errorf("%s %s with Accept %q answered %d, want %d", test.method, test.path, test.accept, got.StatusCode, test.want)
		}
	}
}

// A viewer sees only the own taxpayers, in the environment of the console.
func TestViewerScopes(t *testing.T) {
	t.Parallel()
	accountant := viewer{user: store.User{Role: store.RoleAccountant, TaxpayerIDs: []string{"a"}}, environment: "sandbox"}
	auditor := viewer{user: store.User{Role: store.RoleAuditor, TaxpayerIDs: []string{"a"}}, environment: "sandbox"}
	for _, test := range []struct {
		name string
		err  error
		ok   bool
	}{
		{"own", accountant.Check(store.Scope{Environment: "sandbox", TaxpayerID: "a"}), true},
		{"other taxpayer", accountant.Check(store.Scope{Environment: "sandbox", TaxpayerID: "b"}), false},
		{"other environment", accountant.Check(store.Scope{Environment: "production", TaxpayerID: "a"}), false},
		{"auditor", auditor.Check(store.Scope{Environment: "sandbox", TaxpayerID: "b"}), true},
		{"auditor, other environment", auditor.Check(store.Scope{Environment: "production", TaxpayerID: "b"}), false},
	} {
		if (test.err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, test.err)
		}
	}
	if _, err := accountant.Scope("b"); err == nil {
		t.Error("an accountant gets the scope of another taxpayer")
	}
	if got, err := accountant.Scope("a"); err != nil || got != (store.Scope{Environment: "sandbox", TaxpayerID: "a"}) {
		t.Errorf("the own scope: %v, %v", got, err)
	}
	none := viewer{user: store.User{Role: store.RoleDeveloper}}
	if auditor.TaxpayerIDs() != nil || none.TaxpayerIDs() == nil {
		t.Error("nil must mean all taxpayers, and an empty list none")
	}
}
