package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// certification makes the console that of the certification environment.
func certification(o *Options) {
	o.Environment, o.Trusted, o.ReceiverURL = fiscal.Certification, true, "https://receptor.example"
}

var (
	keyPattern   = regexp.MustCompile(`id="api_key"[^>]* value="([^"]+)"`)
	tokenPattern = regexp.MustCompile(`name="form_token" value="([^"]+)"`)
)

// find returns the first group of a pattern in a page.
func (a answer) find(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	found := pattern.FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("%s is not in the page with status %d: %.300s", pattern, a.StatusCode, a.body)
	}
	return found[1]
}

// actions returns the actions of the audit log with their actors.
func (e *env) actions() (all []string) {
	e.t.Helper()
	entries, err := e.o.Store.AuditEntries(e.t.Context(), store.AuditFilter{}, 0, 1000)
	e.must(err)
	for _, one := range entries {
		all = append(all, one.Action+" by "+one.Caller.Actor)
	}
	return all
}

func (e *env) mustHaveDone(action string, u store.User) {
	e.t.Helper()
	if all := e.actions(); !slices.ContainsFunc(all, func(s string) bool {
		return strings.HasPrefix(s, action+" by ") && strings.Contains(s, u.Name)
	}) {
		e.t.Errorf("the audit log has no %s by %s: %v", action, u.Name, all)
	}
}

// A key is shown in the answer to the form, and never again. A form that is sent twice
// makes one key and says so.
func TestAKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, u := e.signedIn(store.RoleDeveloper, e.taxpayer)
	if got := b.get("/console/keys").body; strings.Contains(got, ">Filtrar<") {
		t.Error("a person with one taxpayer sees the button of an empty filter")
	}
	token := b.get("/console/keys").find(t, regexp.MustCompile(`action="/console/keys">\s*<input type="hidden" name="form_token" value="([^"]+)"`))
	send := func() answer {
		return b.post("/console/keys", "taxpayer", e.taxpayer, "environment", "sandbox", "scopes", "invoices.write", "scopes", "invoices.read", "expires", "2027-12-31", "form_token", token)
	}
	first := send()
	key := first.find(t, keyPattern)
	if first.StatusCode != http.StatusCreated || first.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(key, "fh_") {
		t.Errorf("%d, Cache-Control %s, key %.8s", first.StatusCode, first.Header.Get("Cache-Control"), key)
	}
	if second := send(); second.StatusCode != http.StatusConflict || keyPattern.MatchString(second.body) || !strings.Contains(second.body, "ya se había enviado") {
		t.Errorf("the second time: %d", second.StatusCode)
	}
	all, err := e.o.Store.Credentials(t.Context())
	e.must(err)
	if len(all) != 1 || all[0].ScopeText() != "invoices.write invoices.read" || all[0].ExpiresAt.Before(e.clock.Now()) {
		t.Fatalf("credentials: %+v", all)
	}
	page := b.get("/console/keys")
	if strings.Contains(page.body, key) || !strings.Contains(page.body, all[0].Prefix) {
		t.Error("the page shows the key again, or not its prefix")
	}
	rotation := page.find(t, regexp.MustCompile(`/rotate"><input type="hidden" name="form_token" value="([^"]+)"`))
	for i, want := range []int{http.StatusCreated, http.StatusConflict} {
		if got := b.post("/console/keys/"+all[0].ID+"/rotate", "form_token", rotation); got.StatusCode != want || keyPattern.MatchString(got.body) != (i == 0) {
			t.Errorf("rotation %d answered %d, want %d", i, got.StatusCode, want)
		}
	}
	if got := b.post("/console/keys/" + all[0].ID + "/revoke"); got.StatusCode != http.StatusSeeOther || strings.Contains(got.Header.Get("Location"), key) {
		t.Errorf("revoke: %d", got.StatusCode)
	}
	if got, err := e.o.Store.Credential(t.Context(), all[0].ID); err != nil || got.RevokedAt.IsZero() {
		t.Errorf("the key is not revoked: %v", err)
	}
	if all, err := e.o.Store.Credentials(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%d keys, %v", len(all), err)
	}
	if got := b.get("/console/keys?state=all").body; !strings.Contains(got, "Revocada") {
		t.Error("the page does not show the ended key")
	}
	e.mustHaveDone("credential.create", u)
	e.mustHaveDone("credential.revoke", u)
}

// A developer reaches the keys of the own taxpayers alone, and errors are at their fields
// with the values kept.
func TestKeysOfOthersAndWrongForms(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	other := e.addTaxpayer("199000021", "Otra, SRL")
	operator, _ := e.signedIn(store.RoleOperator)
	developer, _ := e.signedIn(store.RoleDeveloper, e.taxpayer)
	if got := operator.post("/console/keys", "taxpayer", other, "scopes", "ecf.read"); got.StatusCode != http.StatusCreated {
		t.Fatalf("an operator gets %d", got.StatusCode)
	}
	all, err := e.o.Store.Credentials(t.Context())
	e.must(err)
	for _, address := range []string{"/rotate", "/revoke"} {
		if got := developer.post("/console/keys/" + all[0].ID + address); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s of another taxpayer answers %d", address, got.StatusCode)
		}
	}
	if got := developer.get("/console/keys").body; strings.Contains(got, all[0].Prefix) || strings.Contains(got, "Otra, SRL") {
		t.Error("a developer sees the key of another taxpayer")
	}
	for name, test := range map[string]struct {
		pairs []string
		field string
	}{
		"another taxpayer":    {[]string{"taxpayer", other, "scopes", "ecf.read"}, "taxpayer"},
		"no scope":            {[]string{"taxpayer", e.taxpayer}, "scopes"},
		"unknown scope":       {[]string{"taxpayer", e.taxpayer, "scopes", "everything"}, "scopes"},
		"expiry in the past":  {[]string{"taxpayer", e.taxpayer, "scopes", "ecf.read", "expires", "2020-01-01"}, "expires"},
		"no date":             {[]string{"taxpayer", e.taxpayer, "scopes", "ecf.read", "expires", "soon"}, "expires"},
		"another environment": {[]string{"taxpayer", e.taxpayer, "scopes", "ecf.read", "environment", "production"}, "environment"},
	} {
		got := developer.post("/console/keys", test.pairs...)
		if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="`+test.field+`-error"`) {
			t.Errorf("%s: %d, no error at %s", name, got.StatusCode, test.field)
		}
		if strings.Contains(strings.Join(test.pairs, " "), "ecf.read") && !strings.Contains(got.body, `value="ecf.read" checked`) {
			t.Errorf("%s: the form lost its values", name)
		}
	}
	if all, err := e.o.Store.Credentials(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d keys, %v", len(all), err)
	}
}
