package console

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// The link sets the password once; the password then signs in.
func TestWelcomeLinkWorksOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	u, token := e.invite(store.RoleOperator)
	link := "/console/welcome/" + token.Reveal()
	if got := e.browser().get(link); got.StatusCode != http.StatusOK || !strings.Contains(got.body, u.Email) {
		t.Fatalf("the link answered %d", got.StatusCode)
	}
	for _, wrong := range [][2]string{{"short", "short"}, {"password1234", "password1234"}, {goodPassword, goodPassword + "x"}, {strings.Repeat("x", 2000), strings.Repeat("x", 2000)}} {
		if got := e.browser().post(link, "password", wrong[0], "password_again", wrong[1]); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, `aria-invalid="true"`) {
			t.Errorf("the password %.20q answered %d", wrong[0], got.StatusCode)
		}
	}
	b := e.browser()
	if got := b.post(link, "password", goodPassword, "password_again", goodPassword); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("the password answered %d", got.StatusCode)
	}
	wantAnswer(t, "after the welcome", b.get("/console/users"), http.StatusOK)
	for _, again := range []answer{e.browser().get(link), e.browser().post(link, "password", goodPassword, "password_again", goodPassword)} {
		wantAnswer(t, "the link a second time", again, http.StatusNotFound)
	}
	other := e.browser()
	if got := other.post("/console/sign-in", "email", " "+strings.ToUpper(u.Email), "password", goodPassword, "next", "/console/audit"); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/console/audit" {
		t.Errorf("sign-in answered %d to %s: %s", got.StatusCode, got.Header.Get("Location"), got.body)
	}
	entries, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{Object: "user:" + u.ID}, 0, 10)
	e.must(err)
	var actions []string
	for _, entry := range entries {
		actions = append(actions, entry.Action)
		if entry.Action != "user.create" && entry.Caller.Actor != u.Name {
			t.Errorf("%s is by %+v, want the name of the person", entry.Action, entry.Caller)
		}
	}
	if got := strings.Join(actions, " "); got != "user.create user.password user.sign_in user.sign_in" {
		t.Errorf("the audit log has %s", got)
	}
}

func TestLinkEndsAfterADay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, token := e.invite(store.RoleOperator)
	e.clock.Advance(people.LinkTime)
	wantAnswer(t, "a link of yesterday", e.browser().get("/console/welcome/"+token.Reveal()), http.StatusNotFound, "enlace")
}

// The sixth failure within a minute is refused, for an account and for an address, also
// with the right password.
func TestSignInIsLimited(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, u := e.signedIn(store.RoleOperator)
	try := func(email, password string) int {
		got := e.browser().post("/console/sign-in", "email", email, "password", password)
		if (got.StatusCode == http.StatusTooManyRequests) != (got.Header.Get("Retry-After") != "") {
			t.Errorf("%d with Retry-After %q", got.StatusCode, got.Header.Get("Retry-After"))
		}
		return got.StatusCode
	}
	for i := range 5 {
		if got := try(u.Email, "wrong"); got != http.StatusUnauthorized {
			t.Fatalf("failure %d: %d", i+1, got)
		}
	}
	if got := try(u.Email, goodPassword); got != http.StatusTooManyRequests {
		t.Errorf("the right password after five failures: %d", got)
	}
	if got := try("other@example.com", "wrong"); got != http.StatusTooManyRequests {
		t.Errorf("another account from the same address: %d", got)
	}
	e.clock.Advance(time.Minute)
	if got := try(u.Email, goodPassword); got != http.StatusSeeOther {
		t.Errorf("a minute later: %d", got)
	}
}

// A session ends on every node when it is signed out, the person is disabled, or the role
// changes: the nodes share nothing but the database.
func TestSessionsEndOnEveryNode(t *testing.T) {
	t.Parallel()
	one := newEnv(t)
	two := newNode(t, one.address, one.clock, one.keys)
	operator, _ := one.signedIn(store.RoleOperator)
	for name, end := range map[string]func(*browser, store.User){
		"signed out": func(b *browser, _ store.User) { b.post("/console/sign-out") },
		"disabled":   func(_ *browser, u store.User) { operator.post("/console/users/" + u.ID + "/disable") },
		"other role": func(_ *browser, u store.User) { operator.post("/console/users/"+u.ID+"/role", "role", "developer") },
		"reset":      func(_ *browser, u store.User) { operator.post("/console/users/" + u.ID + "/reset") },
	} {
		b, u := one.signedIn(store.RoleAuditor)
		there := two.browser()
		there.cookies["fiscalhub_session"] = b.cookies["fiscalhub_session"]
		if got := there.get("/console/users"); got.StatusCode != http.StatusOK {
			t.Fatalf("%s: before, the other node answers %d", name, got.StatusCode)
		}
		end(b, u)
		if got := there.get("/console/users"); got.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: the other node still answers %d", name, got.StatusCode)
		}
	}
}

// A session ends after 12 hours without use and after 7 days. A live fragment is no use.
func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, _ := e.signedIn(store.RoleAuditor)
	in := func() bool { return b.get("/console/").StatusCode == http.StatusOK }
	for hours := 0; hours+11 < 7*24; hours += 11 {
		if !in() {
			t.Fatalf("the session ended after %d hours", hours)
		}
		e.clock.Advance(11 * time.Hour)
	}
	e.clock.Advance(11 * time.Hour)
	if in() {
		t.Error("the session lives longer than 7 days")
	}
	b, _ = e.signedIn(store.RoleAuditor)
	e.clock.Advance(people.IdleTime - time.Second)
	if !in() {
		t.Error("the session ended before 12 hours")
	}
	e.clock.Advance(people.IdleTime)
	if in() {
		t.Error("the session lives 12 hours without use")
	}

	e.addLive("/console/test-live", func(x *request) error { return x.fragment("mark", nil) })
	b, _ = e.signedIn(store.RoleAuditor)
	e.clock.Advance(people.IdleTime - time.Second)
	if got := b.get("/console/test-live"); got.StatusCode != http.StatusOK {
		t.Fatalf("the fragment answered %d", got.StatusCode)
	}
	e.clock.Advance(time.Second)
	if in() {
		t.Error("a live fragment has kept the session alive")
	}
}

// An unchanged fragment is answered with 304.
func TestAnUnchangedFragmentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	shown := "one"
	e.addLive("/console/test-live", func(x *request) error { return x.fragment("test-live", shown) })
	_, err := e.templates["es"].New("test-live").Parse(`{{.Data}}`)
	e.must(err)
	b, _ := e.signedIn(store.RoleAuditor)
	first := b.get("/console/test-live")
	if first.StatusCode != http.StatusOK || first.body != "one" || first.Header.Get("ETag") == "" {
		t.Fatalf("%d %s", first.StatusCode, first.body)
	}
	b.header.Set("If-None-Match", first.Header.Get("ETag"))
	if got := b.get("/console/test-live"); got.StatusCode != http.StatusNotModified || got.body != "" {
		t.Errorf("unchanged: %d %s", got.StatusCode, got.body)
	}
	shown = "two"
	if got := b.get("/console/test-live"); got.StatusCode != http.StatusOK || got.body != "two" {
		t.Errorf("changed: %d %s", got.StatusCode, got.body)
	}
}

// With the flag, an operator without a second factor sees only the own account.
func TestOperatorsMayNeedASecondFactor(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *Options) { o.RequireSecondFactor = true })
	operator, _ := e.signedIn(store.RoleOperator)
	auditor, _ := e.signedIn(store.RoleAuditor)
	if got := operator.get("/console/users"); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/console/account" {
		t.Errorf("a page answered %d to %s", got.StatusCode, got.Header.Get("Location"))
	}
	wantAnswer(t, "a form", operator.post("/console/users", "name", "x"), http.StatusForbidden)
	wantAnswer(t, "the account", operator.get("/console/account"), http.StatusOK, "exige un segundo factor")
	wantAnswer(t, "an auditor", auditor.get("/console/users"), http.StatusOK)
}

// Guesses at the password of a person are in the audit log, once an hour. Guesses at accounts
// that do not exist are not: a stranger could fill the log with them. A person who signs in
// from the address of guesses at another account is not named.
func TestGuessesAtAPasswordAreAudited(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, u := e.signedIn(store.RoleOperator)
	guess := func(email string, n int) {
		t.Helper()
		for range n {
			e.browser().post("/console/sign-in", "email", email, "password", "wrong")
		}
		e.o.Pipeline.Journal().Flush(t.Context())
	}
	entries := func() []audit.Entry {
		t.Helper()
		all, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{}, 0, 1000)
		e.must(err)
		return slices.DeleteFunc(all, func(e audit.Entry) bool { return e.Action != "user.sign_in_limited" })
	}
	guess("nobody@example.com", 7)
	if found := entries(); len(found) != 0 {
		t.Errorf("guesses at nobody: %+v", found)
	}
	e.clock.Advance(2 * time.Minute)
	_, other := e.signedIn(store.RoleAuditor)
	guess(u.Email, 5)
	wantAnswer(t, "the address is not limited", e.browser().post("/console/sign-in", "email", other.Email, "password", "wrong"), http.StatusTooManyRequests)
	e.o.Pipeline.Journal().Flush(t.Context())
	if found := entries(); len(found) != 0 {
		t.Errorf("a sign-in from the address of guesses at another account: %+v", found)
	}
	e.clock.Advance(2 * time.Minute)
	for range 3 {
		guess(u.Email, 8)
		e.clock.Advance(2 * time.Minute)
	}
	if found := entries(); len(found) != 1 || found[0].Object != "user:"+u.ID || found[0].Caller.From == "" {
		t.Errorf("guesses at a person: %+v", found)
	}
	e.clock.Advance(time.Hour)
	guess(u.Email, 8)
	if found := entries(); len(found) != 2 {
		t.Errorf("an hour later: %d entries", len(found))
	}
}
