package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// An operator invites a person, whose link is shown once; changes are in the audit log with
// the operator's name.
func TestOperatorManagesPeople(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, self := e.signedIn(store.RoleOperator)
	got := operator.post("/console/users", "name", "Luis Marte", "email", "Luis@Example.com", "role", "accountant", "environment", "", "taxpayer", e.taxpayer)
	link := regexp.MustCompile(`http://console\.example(/console/welcome/[\w-]{43})`).FindStringSubmatch(got.body)
	if got.StatusCode != http.StatusCreated || link == nil {
		t.Fatalf("%d without a link: %s", got.StatusCode, got.body)
	}
	luis, err := e.o.Store.UserByEmail(t.Context(), "luis@example.com")
	e.must(err)
	page := "/console/users/" + luis.ID
	if strings.Contains(operator.get(page).body, "/welcome/") {
		t.Error("the link is shown a second time")
	}
	b := e.browser()
	b.post(link[1], "password", goodPassword, "password_again", goodPassword)
	wantAnswer(t, "an accountant gets the page of people", b.get("/console/users"), http.StatusNotFound)
	if got := operator.post(page+"/role", "role", "auditor"); got.Header.Get("Location") != page+"?done=users.role" {
		t.Errorf("the role: %d to %s", got.StatusCode, got.Header.Get("Location"))
	}
	if got := operator.get(page + "?done=users.role"); !strings.Contains(got.body, "Se guardó el rol") || !strings.Contains(got.body, "Todos") {
		t.Error("the page does not show the change")
	}
	operator.post(page + "/disable")
	again := operator.post(page + "/reset")
	if !strings.Contains(again.body, "/console/welcome/") {
		t.Error("a reset shows no link")
	}
	for _, wrong := range [][2]string{{"role", "king"}, {"taxpayer", "nothing"}} {
		form := url.Values{"role": {"developer"}}
		form.Set(wrong[0], wrong[1])
		if got := operator.send(http.MethodPost, page+"/role", form); got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", wrong, got.StatusCode)
		}
	}
	var actions []string
	entries, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{Object: "user:" + luis.ID, Actor: self.Name}, 0, 100)
	e.must(err)
	for _, entry := range entries {
		actions = append(actions, entry.Action)
		if entry.Caller.RequestID == "" || !strings.Contains(entry.Caller.From, self.Email) {
			t.Errorf("%s is by %+v", entry.Action, entry.Caller)
		}
	}
	if diff := cmp.Diff([]string{"user.create", "user.role", "user.disable", "user.reset"}, actions); diff != "" {
		t.Errorf("the operator's entries (-want +got):\n%s", diff)
	}
}

// Errors are at their fields, and what was entered stays.
func TestWrongInvitationsAreShownAtTheirFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, self := e.signedIn(store.RoleOperator)
	for field, form := range map[string]url.Values{
		"name":     {"name": {" "}, "email": {"a@example.com"}, "role": {"auditor"}},
		"email":    {"name": {"Ana"}, "email": {self.Email}, "role": {"auditor"}},
		"role":     {"name": {"Ana"}, "email": {"a@example.com"}, "role": {"king"}},
		"taxpayer": {"name": {"Ana"}, "email": {"a@example.com"}, "role": {"developer"}, "taxpayer": {"nothing"}},
	} {
		got := operator.send(http.MethodPost, "/console/users", form)
		if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="`+field+`-error"`) || !strings.Contains(got.body, `href="#`+field+`"`) {
			t.Errorf("%s: %d without an error at the field", field, got.StatusCode)
		}
		if name := form.Get("name"); strings.TrimSpace(name) != "" && !strings.Contains(got.body, `value="`+name+`"`) {
			t.Errorf("%s: what was entered is gone", field)
		}
	}
}

// A person without the right sees no control; an operator cannot take away the own access.
func TestPagesShowNoControlForWhatARoleMayNotDo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, self := e.signedIn(store.RoleOperator)
	auditor, _ := e.signedIn(store.RoleAuditor)
	for _, page := range []string{"/console/users", "/console/users/" + self.ID} {
		got := auditor.get(page)
		if forms := strings.Count(got.body, `method="post"`); got.StatusCode != http.StatusOK || forms != 1 { // sign-out
			t.Errorf("%s shows an auditor %d forms (%d)", page, forms, got.StatusCode)
		}
	}
	for _, action := range []string{"disable", "reset", "role"} {
		if got := operator.post("/console/users/"+self.ID+"/"+action, "role", "auditor"); got.StatusCode != http.StatusForbidden {
			t.Errorf("an operator may %s the own account: %d", action, got.StatusCode)
		}
	}
}

// An operator who is limited to an environment gets no link that opens another one.
func TestAnOperatorOfOneEnvironmentManagesItsPeopleOnly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	operator, self := e.signedIn(store.RoleOperator)
	_, everywhere := e.signedIn(store.RoleOperator)
	e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.UpdateUser(t.Context(), self.ID, "test", func(u *store.User) error {
			u.Environment = fiscal.Sandbox
			return nil
		})
	}))
	page := "/console/users/" + everywhere.ID
	if got := operator.get(page); got.StatusCode != http.StatusOK || strings.Contains(got.body, "/reset") {
		t.Errorf("the page of a person of every environment: %d, with controls: %t", got.StatusCode, strings.Contains(got.body, "/reset"))
	}
	for _, action := range []string{"disable", "reset", "role"} {
		wantAnswer(t, action, operator.post(page+"/"+action, "role", "auditor"), http.StatusForbidden)
	}
	form := []string{"name", "Ana", "email", "ana@example.com", "role", "operator", "environment"}
	wantAnswer(t, "an invitation to another environment", operator.post("/console/users", append(form, "production")...), http.StatusForbidden)
	if got := operator.get("/console/users"); strings.Contains(got.body, `value="production"`) || strings.Contains(got.body, "Todos los ambientes") {
		t.Error("the form offers other environments")
	}
	if got := operator.post("/console/users", append(form, "")...); got.StatusCode != http.StatusCreated {
		t.Fatalf("an invitation answered %d", got.StatusCode)
	}
	ana, err := e.o.Store.UserByEmail(t.Context(), "ana@example.com")
	e.must(err)
	if ana.Environment != fiscal.Sandbox {
		t.Errorf("the new person is of the environment %q", ana.Environment)
	}
	wantAnswer(t, "a change of a person of the same environment", operator.post("/console/users/"+ana.ID+"/disable"), http.StatusSeeOther)
}

// A person sets up a second factor on the page, gets recovery codes once, and then needs a
// code to sign in.
func TestSecondFactorOnTheAccountPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, u := e.signedIn(store.RoleOperator)
	b.post("/console/account/second-factor/begin")
	page := b.get("/console/account").body
	if !strings.Contains(page, `class="qr"`) || !regexp.MustCompile(`value="[A-Z2-7]{32}"`).MatchString(page) {
		t.Fatal("the page shows neither the QR code nor the secret")
	}
	wantAnswer(t, "a wrong code", b.post("/console/account/second-factor/confirm", "code", "000000"), http.StatusUnprocessableEntity, `id="code-error"`)
	e.mustSignIn(u.Email, "", http.StatusSeeOther)
}

func (e *env) mustSignIn(email, code string, want int) {
	e.t.Helper()
	if got := e.browser().post("/console/sign-in", "email", email, "password", goodPassword, "code", code); got.StatusCode != want {
		e.t.Errorf("sign-in answered %d, want %d", got.StatusCode, want)
	}
}

// A person sees the own sessions and ends each of them.
func TestSessionsOnTheAccountPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	one, u := e.signedIn(store.RoleAccountant, e.taxpayer)
	two := e.browser()
	two.header.Set("User-Agent", "Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/140.0")
	e.clock.Advance(time.Minute)
	two.post("/console/sign-in", "email", u.Email, "password", goodPassword)
	page := one.get("/console/account").body
	ends := regexp.MustCompile(`/console/account/sessions/[\w-]+/end`).FindAllString(page, -1)
	if len(ends) != 2 || !strings.Contains(page, "Firefox · Windows") {
		t.Fatalf("the page shows the sessions %v", ends)
	}
	if got := one.post(ends[0]); got.Header.Get("Location") != "/console/account?done=account.session" { // the newest is first
		t.Errorf("the end of another session: %d to %s", got.StatusCode, got.Header.Get("Location"))
	}
	wantAnswer(t, "the ended session", two.get("/console/account"), http.StatusSeeOther)
	other, _ := e.signedIn(store.RoleOperator)
	wantAnswer(t, "another person ends the session", other.post(ends[1]), http.StatusNotFound)
	if got := one.post(ends[1]); got.Header.Get("Location") != "/console/sign-in" || one.get("/console/").StatusCode != http.StatusSeeOther {
		t.Errorf("the end of the own session: %d", got.StatusCode)
	}
}

func TestPasswordOnTheAccountPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, u := e.signedIn(store.RoleAccountant, e.taxpayer)
	change := func(now, password, again string) answer {
		return b.post("/console/account/password", "password_now", now, "password", password, "password_again", again)
	}
	for field, got := range map[string]answer{
		"password_now": change("wrong", "otra frase larga", "otra frase larga"), "password": change(goodPassword, "corta", "corta"),
		"password_again": change(goodPassword, "otra frase larga", "otra frase"),
	} {
		if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="`+field+`-error"`) {
			t.Errorf("%s: %d without an error at the field", field, got.StatusCode)
		}
	}
	wantAnswer(t, "the change", change(goodPassword, "otra frase larga", "otra frase larga"), http.StatusSeeOther)
	e.mustSignIn(u.Email, "", http.StatusUnauthorized)
	wantAnswer(t, "the own session ended", b.get("/console/account"), http.StatusOK)
}

// The audit page shows who changed what, filters, pages and verifies the chain.
func TestAuditPage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	auditor, self := e.signedIn(store.RoleAuditor)
	for range auditRows {
		e.addTaxpayer("199000021", "Otra, SRL")
	}
	first := auditor.get("/console/audit").body
	older := regexp.MustCompile(`href="(/console/audit\?before=\d+)"`).FindStringSubmatch(first)
	if older == nil || strings.Count(first, "<details") != auditRows {
		t.Fatalf("the first page has %d entries", strings.Count(first, "<details"))
	}
	if got := auditor.get(older[1]).body; !strings.Contains(got, "user.sign_in") || !strings.Contains(got, self.Name) {
		t.Error("the second page does not show the oldest entries")
	}
	if got := auditor.get("/console/audit?actor=" + url.QueryEscape(self.Name)).body; !strings.Contains(got, "user.sign_in") || strings.Contains(got, "taxpayer.create") {
		t.Error("the filter by actor does not hold")
	}
	if got := auditor.get("/console/audit?object=nothing").body; !strings.Contains(got, "Ninguna entrada coincide") {
		t.Error("a search without a result says nothing")
	}
	if got := auditor.get("/console/audit?from=2030-01-01").body; !strings.Contains(got, "Ninguna entrada coincide") {
		t.Error("the filter by time does not hold")
	}
	for query, want := range map[string]string{
		"actor=" + url.QueryEscape(strings.ToUpper(self.Name[:9])): "user.sign_in", "object=SIGN_in": "user.sign_in", "object=" + self.ID[:20]: self.Name,
		"object=user:" + self.ID: "user.sign_in",
	} {
		if got := auditor.get("/console/audit?" + query).body; !strings.Contains(got, want) || strings.Contains(got, "taxpayer.create") {
			t.Errorf("%s finds other entries", query)
		}
	}
	if got := auditor.get("/console/audit?actor=%25").body; !strings.Contains(got, "Ninguna entrada coincide") {
		t.Error("a wildcard finds entries")
	}
	wrong := auditor.get("/console/audit?to=soon")
	if wrong.StatusCode != http.StatusUnprocessableEntity || strings.Contains(wrong.body, "<tbody>") {
		t.Errorf("a wrong date is answered with %d, or with entries", wrong.StatusCode)
	}
	if got := wrong.body; !strings.Contains(got, `id="to-error"`) {
		t.Error("a wrong date is not shown at its field")
	}
	if got := auditor.get("/console/audit?verify=1").body; !strings.Contains(got, "completa y sin cambios") {
		t.Error("the verification has no result")
	}
}

// The page names the first wrong entry, also when that was inserted before the first one
// and has the number 0. A wrong checkpoint is no wrong entry.
func TestAuditPageNamesTheWrongEntry(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	auditor, _ := e.signedIn(store.RoleAuditor)
	db := storetest.OpenSQL(t, e.address)
	_, err := db.ExecContext(t.Context(), `INSERT INTO audit_checkpoints (seq, hash, at, signature) VALUES (1, x'00', 'now', x'00')`)
	e.must(err)
	if got := auditor.get("/console/audit?verify=1").body; !strings.Contains(got, "Un punto de control de la auditoría no es válido.") ||
		!strings.Contains(got, "punto de control de 1 entradas: el punto de control no fue firmado por este servicio, o fue alterado") {
		t.Error("a wrong checkpoint is not shown")
	}
	_, err = db.ExecContext(t.Context(), `INSERT INTO audit_entries SELECT 0, at, actor, origin, request_id, reason, action, object, environment, taxpayer_id, before, after, hash FROM audit_entries WHERE seq = 1`)
	e.must(err)
	if got := auditor.get("/console/audit?verify=1").body; !strings.Contains(got, "Primera entrada incorrecta: 0.") ||
		!strings.Contains(got, "se insertó: la primera entrada tiene el número 1") || strings.Contains(got, "punto de control") {
		t.Error("the entry 0 is not named")
	}
}

// A person without taxpayers reads what to do instead of empty lists, and the operator who
// creates such a person is warned.
func TestAPersonWithoutTaxpayers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	accountant, _ := e.signedIn(store.RoleAccountant)
	for _, address := range []string{issueAddress, exportsAddress} {
		got := accountant.get(address)
		got.want(t, "Usted no tiene contribuyentes", "Pida a un operador")
		if strings.Contains(got.body, "<select") {
			t.Errorf("%s has an empty list", address)
		}
	}
	operator, _ := e.signedIn(store.RoleOperator)
	for role, warned := range map[string]bool{"accountant": true, "developer": true, "auditor": false} {
		got := operator.post(usersAddress, "name", "Nueva Persona", "email", role+"@example.com", "role", role)
		if got.StatusCode != http.StatusCreated || strings.Contains(got.body, "Nueva Persona no ve ningún contribuyente") != warned {
			t.Errorf("%s without taxpayers: %d, or the warning is wrong", role, got.StatusCode)
		}
	}
	got := operator.post(usersAddress, "name", "Nueva Persona", "email", "with@example.com", "role", "accountant", "taxpayer", e.taxpayer)
	if strings.Contains(got.body, "no ve ningún contribuyente") {
		t.Error("a person with a taxpayer has the warning")
	}
	empty := newNode(t, storetest.Address(t, "sqlite"), e.clock, e.keys)
	operator, _ = empty.signedIn(store.RoleOperator)
	operator.get(issueAddress).want(t, "/console/taxpayers/new")
}
