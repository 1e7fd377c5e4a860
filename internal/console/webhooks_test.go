package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

var secretPattern = regexp.MustCompile(`id="secret"[^>]* value="([^"]+)"`)

// addEvent stores an event with its deliveries.
func (e *env) addEvent(kind string) store.Event {
	e.t.Helper()
	n := store.Event{Scope: store.Scope{Environment: e.o.Environment, TaxpayerID: e.taxpayer}, ID: event.NewID(), Kind: kind, At: e.clock.Now(), Body: []byte(`{}`)}
	e.must(e.o.Store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.AddEvent(e.t.Context(), n) }))
	return n
}

// endpoints lists the endpoints of all taxpayers.
func (e *env) endpoints() []store.Endpoint {
	e.t.Helper()
	all, err := e.o.Store.AllEndpoints(e.t.Context())
	e.must(err)
	return all
}

// A person adds an endpoint, sees its secret once, tests it, sends events again, rotates
// the secret and deletes it.
func TestAWebhookFromItsCreationToItsEnd(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	b, u := e.signedIn(store.RoleDeveloper, e.taxpayer)
	token := b.get("/console/webhooks").find(t, tokenPattern)
	send := func() answer {
		return b.post("/console/webhooks", "taxpayer", e.taxpayer, "url", "https://sistema.example/eventos", "events", "fiscal_document.accepted", "events", "fiscal_document.rejected", "form_token", token)
	}
	first := send()
	secret := first.find(t, secretPattern)
	if second := send(); first.StatusCode != http.StatusCreated || second.StatusCode != http.StatusConflict || strings.Contains(second.body, secret) {
		t.Errorf("created with %d, sent again with %d", first.StatusCode, second.StatusCode)
	}
	if len(e.endpoints()) != 1 {
		t.Fatalf("%d endpoints", len(e.endpoints()))
	}
	hook := e.endpoints()[0]
	address := "/console/webhooks/" + hook.ID
	if got := b.get(address).body; strings.Contains(got, secret) || !strings.Contains(got, "Aún no se envió nada") {
		t.Error("the page shows the secret again, or an attempt")
	}
	if got := b.post(address + "/test"); got.StatusCode != http.StatusSeeOther || !strings.Contains(b.get(got.Header.Get("Location")).body, "La prueba llegó bien") {
		t.Errorf("test: %d", got.StatusCode)
	}
	e.poster.result.Store(&webhook.Result{Error: "dns"})
	if got := b.get(b.post(address + "/test").Header.Get("Location")).body; !strings.Contains(got, "La prueba no llegó") || !strings.Contains(got, "El nombre del servidor no existe") {
		t.Error("the page does not say why the test failed")
	}
	n := e.addEvent("fiscal_document.accepted")
	for name, test := range map[string]struct{ field, value, want string }{
		"since":        {"since", "2026-11-15T00:00", "Se reenviará 1 evento"},
		"a day":        {"since", "2026-11-15", "Se reenviará 1 evento"},
		"an instant":   {"since", "2026-11-15T12:00:00Z", "Se reenviará 1 evento"},
		"later":        {"since", "2026-11-15T23:00", "No hay eventos que reenviar"},
		"one event":    {"event", n.ID, "Se reenviará 1 evento"},
		"what failed":  {"failed", "1", "No hay eventos que reenviar"},
		"no moment":    {"since", "", "Indique desde cuándo"},
		"wrong moment": {"since", "ayer", "Escriba una fecha válida"},
	} {
		got := b.post(address+"/replay", test.field, test.value)
		if got.StatusCode == http.StatusSeeOther {
			got = b.get(got.Header.Get("Location"))
		}
		if !strings.Contains(got.body, test.want) {
			t.Errorf("replay of %s answers %d without %q", name, got.StatusCode, test.want)
		}
	}
	page := b.get(address)
	rotation := page.find(t, tokenPattern)
	if got := b.post(address+"/rotate", "form_token", rotation); got.find(t, secretPattern) == secret {
		t.Error("the rotation shows the old secret")
	}
	if got := b.post(address+"/rotate", "form_token", rotation); got.StatusCode != http.StatusConflict || secretPattern.MatchString(got.body) {
		t.Errorf("the second rotation: %d", got.StatusCode)
	}
	if got := e.endpoints()[0]; got.Secret.Version != 2 || got.OldSecret.Version != 1 {
		t.Errorf("the secrets have the versions %d and %d", got.Secret.Version, got.OldSecret.Version)
	}
	b.post(address + "/delete")
	if len(e.endpoints()) != 0 || b.get(address).StatusCode != http.StatusNotFound {
		t.Error("the endpoint is not deleted")
	}
	for _, action := range []string{"webhook.create", "webhook.replay", "webhook.rotate", "webhook.delete"} {
		e.mustHaveDone(action, u)
	}
}

// A disabled endpoint says why, and can be enabled. The endpoint of another taxpayer does
// not exist for a developer, and the sandbox has none.
func TestADisabledWebhookAndThoseOfOthers(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	b, _ := e.signedIn(store.RoleOperator)
	b.post("/console/webhooks", "taxpayer", e.taxpayer, "url", "https://sistema.example/eventos", "events", "*")
	hook := e.endpoints()[0]
	e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.DisableEndpoint(t.Context(), hook.Scope, hook.ID, store.DisabledFailing, e.clock.Now())
	}))
	address := "/console/webhooks/" + hook.ID
	if got := b.get(address).body; !strings.Contains(got, "está desactivado") || !strings.Contains(got, address+"/enable") {
		t.Error("the page does not say that the endpoint is disabled")
	}
	auditor, _ := e.signedIn(store.RoleAuditor)
	if got := auditor.get(address).body; strings.Contains(got, `action="`+address) || !strings.Contains(got, "está desactivado") {
		t.Error("an auditor has a control, or does not see the state")
	}
	b.post(address + "/enable")
	if got := e.endpoints()[0]; got.Status != store.EndpointEnabled {
		t.Errorf("the endpoint is %s", got.Status)
	}
	stranger, _ := e.signedIn(store.RoleDeveloper, e.addTaxpayer("199000021", "Otra, SRL"))
	for _, path := range []string{"", "/attempts"} {
		if got := stranger.get(address + path); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers a developer of another taxpayer with %d", path, got.StatusCode)
		}
	}
	for _, path := range []string{"/test", "/replay", "/rotate", "/enable", "/delete"} {
		if got := stranger.post(address + path); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers a developer of another taxpayer with %d", path, got.StatusCode)
		}
	}
	for field, pairs := range map[string][]string{
		"url":    {"taxpayer", e.taxpayer, "url", "ftp://x", "events", "*"},
		"events": {"taxpayer", e.taxpayer, "url", "https://sistema.example/", "events", "nothing"},
	} {
		if got := b.post("/console/webhooks", pairs...); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, `id="`+field+`-error"`) {
			t.Errorf("%s: %d", field, got.StatusCode)
		}
	}
	sandbox := newEnv(t)
	if sandbox.o.Environment != fiscal.Sandbox {
		t.Fatal("not the sandbox")
	}
	developer, _ := sandbox.signedIn(store.RoleDeveloper, sandbox.taxpayer)
	if got := developer.get("/console/webhooks").body; !strings.Contains(got, "no envía eventos") || strings.Contains(got, `name="url"`) {
		t.Error("the page of the sandbox has a form")
	}
}
