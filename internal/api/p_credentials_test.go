package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const fixedID = "req_0123456789abcdef0123456789abcdef"

// withID makes the answers to equal requests equal to the byte.
func withID(r request) request {
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set("X-Request-Id", fixedID)
	return r
}

func TestP01NoCredential(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		tests := []struct {
			name string
			r    request
		}{
			{"no header", request{path: "invoices"}},
			{"an empty header", request{path: "invoices", header: http.Header{"Authorization": {""}}}},
			{"a scheme alone", request{path: "invoices", header: http.Header{"Authorization": {"Bearer"}}}},
			{"a scheme and spaces", request{path: "invoices", header: http.Header{"Authorization": {"Bearer   "}}}},
			{"another scheme", request{path: "invoices", header: http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}}},
			{"the key as user of another scheme", request{path: "invoices", header: http.Header{"Authorization": {"Token " + w.key}}}},
			{"the key without a scheme", request{path: "invoices", header: http.Header{"Authorization": {w.key}}}},
			{"the key in the query", request{path: "invoices?api_key=" + w.key}},
			{"the key as a token in the query", request{path: "invoices?access_token=" + w.key}},
			{"the key in another header", request{path: "invoices", header: http.Header{"X-Api-Key": {w.key}}}},
			{"the key in the body", request{method: http.MethodPost, path: "invoices", idem: "k", body: []byte(`{"api_key":"` + w.key + `"}`)}},
		}
		for _, tt := range tests {
			tt.r.key = "-"
			a := w.send(tt.r)
			if a.status != http.StatusUnauthorized || a.code() != "unauthorized" {
				t.Errorf("%s: %s", tt.name, a)
			}
			if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="fh"` {
				t.Errorf("%s: WWW-Authenticate %s", tt.name, got)
			}
		}
	})
}

func TestTheSchemeOfACredentialHasNoCase(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "bEaReR   "} {
			a := w.send(request{path: "invoices", key: "-", header: http.Header{"Authorization": {scheme + w.key}}})
			if a.status != http.StatusOK {
				t.Errorf("%q: %s", scheme, a)
			}
		}
	})
}

// The database is gone here, so that whoever asked it would be told 503.
func TestP02MalformedCredentialIsRefusedWithoutTheDatabase(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		s, cut := w.lost(t)
		blind := w.beside(t, func(o *api.Options, _ *http.Server) { o.Store = s })
		cut()
		flip := func(at int) string {
			b := []byte(w.key)
			if b[at]++; b[at] > 'z' || b[at] == ':' || b[at] == '[' {
				b[at] = 'a'
			}
			return "Bearer " + string(b)
		}
		tests := []struct {
			name  string
			lines []string
		}{
			{"not the shape of a key", []string{"Bearer x"}},
			{"another product's key", []string{"Bearer sk_live_0123456789abcdefghij"}},
			{"a character of the prefix changed", []string{flip(5)}},
			{"a character of the secret changed", []string{flip(20)}},
			{"a character of the checksum changed", []string{flip(len(w.key) - 1)}},
			{"cut short", []string{"Bearer " + w.key[:len(w.key)-1]}},
			{"one character more", []string{"Bearer " + w.key + "0"}},
			{"an environment that is none", []string{"Bearer fh_x" + w.key[4:]}},
			{"in upper case", []string{"Bearer " + strings.ToUpper(w.key)}},
			{"two words", []string{"Bearer " + w.key + " " + w.key}},
			{"10 KB", []string{"Bearer fh_" + strings.Repeat("a", 10_000)}},
			{"good keys in two lines", []string{"Bearer " + w.key, "Bearer " + w.key}},
			{"a good key and another line", []string{"Bearer " + w.key, "Basic dXNlcjpwYXNz"}},
		}
		for _, tt := range tests {
			a := blind.send(request{path: "invoices", key: "-", header: http.Header{"Authorization": tt.lines}})
			if a.status != http.StatusUnauthorized || a.code() != "unauthorized" {
				t.Errorf("%s: %s", tt.name, a)
			}
			if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="fh", error="invalid_token"` {
				t.Errorf("%s: WWW-Authenticate %s", tt.name, got)
			}
		}
		if a := blind.send(request{path: "invoices", key: stranger(t, fiscal.Sandbox)}); a.status < 500 {
			t.Errorf("the database is there after all: %s", a)
		}
	})
}

func TestP03AllBadCredentialsLookAlike(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		revoked := w.newKey(w.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		w.must(w.credentials().Revoke(t.Context(), w.credentialOf(revoked).ID))
		key, _, err := w.credentials().Issue(t.Context(), access.Terms{
			TaxpayerID: w.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(), ExpiresAt: w.clock.now(),
		})
		w.must(err)
		tests := []struct{ name, key string }{
			{"unknown", stranger(t, fiscal.Sandbox)},
			{"unknown of another environment", stranger(t, fiscal.Production)},
			{"a good prefix with another secret", forge(t, w.key)},
			{"revoked", revoked},
			{"expired", key.Reveal()},
			{"malformed", w.key[:40]},
		}
		want := w.send(withID(request{path: "invoices", key: tests[0].key}))
		if want.status != http.StatusUnauthorized {
			t.Fatal(want)
		}
		for _, tt := range tests {
			a := w.send(withID(request{path: "invoices", key: tt.key}))
			if a.String() != want.String() || a.header.Get("WWW-Authenticate") != want.header.Get("WWW-Authenticate") || len(a.header) != len(want.header) {
				t.Errorf("%s: %s %v\nwant %s %v", tt.name, a, a.header, want, want.header)
			}
		}
		if a := w.send(request{path: "invoices"}); a.status != http.StatusOK {
			t.Errorf("the good key: %s", a)
		}
	})
}

func TestP04RotationOverlaps(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		wants := func(key string, status int) {
			t.Helper()
			if a := w.send(request{path: "invoices", key: key}); a.status != status {
				t.Errorf("at %s: want %d, got %s", w.clock.now().Format(time.TimeOnly), status, a)
			}
		}
		old := w.credentialOf(w.key)
		key, made, err := w.credentials().Rotate(t.Context(), old.ID, time.Hour)
		w.must(err)
		next := key.Reveal()
		if len(made.Scopes) != len(old.Scopes) || made.TaxpayerID != old.TaxpayerID || made.Environment != old.Environment {
			t.Errorf("the successor is %+v of %+v", made, old)
		}
		rotated := w.clock.now()
		wants(w.key, http.StatusOK)
		wants(next, http.StatusOK)
		w.clock.set(rotated.Add(time.Hour - time.Millisecond))
		wants(w.key, http.StatusOK)
		w.clock.set(rotated.Add(time.Hour))
		wants(w.key, http.StatusUnauthorized)
		wants(next, http.StatusOK)

		// A leak: no overlap at all, within the time that a node relies on what it read.
		key, _, err = w.credentials().Rotate(t.Context(), w.credentialOf(next).ID, 0)
		w.must(err)
		w.clock.advance(5 * time.Second)
		wants(next, http.StatusUnauthorized)
		wants(key.Reveal(), http.StatusOK)

		if _, _, err := w.credentials().Rotate(t.Context(), old.ID, time.Hour); err == nil {
			t.Error("a credential that has ended was rotated")
		}
	})
}

func TestRotationKeepsItsBounds(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		id := w.credentialOf(w.key).ID
		for _, overlap := range []time.Duration{-time.Second, 30*24*time.Hour + time.Second} {
			if _, _, err := w.credentials().Rotate(t.Context(), id, overlap); err == nil {
				t.Errorf("an overlap of %s was accepted", overlap)
			}
		}
		// A credential that ends sooner is not given more time by its rotation.
		key, made, err := w.credentials().Issue(t.Context(), access.Terms{
			TaxpayerID: w.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(), ExpiresAt: w.clock.now().Add(time.Minute),
		})
		w.must(err)
		_, _, err = w.credentials().Rotate(t.Context(), made.ID, 24*time.Hour)
		w.must(err)
		w.clock.advance(time.Minute)
		if a := w.send(request{path: "invoices", key: key.Reveal()}); a.status != http.StatusUnauthorized {
			t.Errorf("after its own end: %s", a)
		}
	})
}

func TestP05RevocationEndsAKeptConnection(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		c := w.dial(t)
		text := w.sentText(http.MethodGet, "/v1/taxpayers/"+w.taxpayer+"/invoices", w.key)
		if a := c.ask(t, http.MethodGet, text); a.status != http.StatusOK {
			t.Fatal(a)
		}
		w.must(w.credentials().Revoke(t.Context(), w.credentialOf(w.key).ID))
		w.clock.advance(5 * time.Second)
		if a := c.ask(t, http.MethodGet, text); a.status != http.StatusUnauthorized {
			t.Errorf("5 seconds after the revocation: %s", a)
		}
		w.must(w.credentials().Revoke(t.Context(), w.credentialOf(w.key).ID)) // again, which changes nothing
	})
}

// Whoever guesses at a prefix must not lock its owner out.
func TestAWrongSecretDoesNotSpoilTheRightOne(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		key := w.newKey(w.taxpayer, fiscal.Sandbox, apikey.InvoicesRead)
		for range 3 {
			if a := w.send(request{path: "invoices", key: forge(t, key)}); a.status != http.StatusUnauthorized {
				t.Errorf("another secret: %s", a)
			}
			if a := w.send(request{path: "invoices", key: key}); a.status != http.StatusOK {
				t.Errorf("the right one: %s", a)
			}
		}
	})
}

func TestP07KeyOfAnotherEnvironment(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		for _, env := range []fiscal.Environment{fiscal.Production, fiscal.Certification} {
			key := w.newKey(w.taxpayer, env, apikey.AllScopes()...)
			for _, o := range operations(t) {
				if !o.ofTaxpayer() {
					continue
				}
				r := o.complete(o.at(w.taxpayer, store.NewID()))
				r.key = key
				a := w.send(r)
				if a.status != http.StatusForbidden || a.code() != "forbidden" || a.header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s with a key of %s: %s %v", o, env, a, a.header)
				}
			}
			found, err := w.store.ListInvoices(t.Context(), store.Scope{Environment: env, TaxpayerID: w.taxpayer}, store.InvoiceFilter{Limit: 1})
			w.must(err)
			if len(found) > 0 {
				t.Errorf("an invoice was written in %s", env)
			}
		}
		if a := w.send(request{path: "invoices"}); strings.Contains(string(a.body), "complete") {
			t.Errorf("an invoice was written: %s", a)
		}
	})
}

func TestP08MissingScopesAreNamed(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		const create, documents = "invoices", "fiscal-documents/00000000-0000-0000-0000-000000000000"
		all := func(but ...apikey.Scope) []apikey.Scope {
			var rest []apikey.Scope
			for _, s := range apikey.AllScopes() {
				if !strings.Contains(joinScopes(but), string(s)) {
					rest = append(rest, s)
				}
			}
			return rest
		}
		tests := []struct {
			method, path string
			scopes       []apikey.Scope
			missing      string
		}{
			{http.MethodPost, create, all(apikey.ECFSubmit), "ecf.submit"},
			{http.MethodPost, create, all(apikey.InvoicesWrite), "invoices.write"},
			{http.MethodPost, create, all(apikey.InvoicesWrite, apikey.ECFSubmit), "invoices.write ecf.submit"},
			{http.MethodGet, create, all(apikey.InvoicesRead), "invoices.read"},
			{http.MethodHead, create, all(apikey.InvoicesRead), "invoices.read"},
			{http.MethodGet, create + "/00000000-0000-0000-0000-000000000000", all(apikey.InvoicesRead), "invoices.read"},
			{http.MethodGet, "fiscal-documents?external_id=a", all(apikey.ECFRead), "ecf.read"},
			{http.MethodGet, documents, all(apikey.ECFRead), "ecf.read"},
			{http.MethodGet, documents + "/xml", all(apikey.ECFRead), "ecf.read"},
			{http.MethodGet, documents + "/pdf", all(apikey.ECFRead), "ecf.read"},
			{http.MethodGet, "events", all(apikey.ECFRead), "ecf.read"},
			{http.MethodPost, "webhook-endpoints", all(apikey.WebhooksManage), "webhooks.manage"},
			{http.MethodGet, "webhook-endpoints", all(apikey.WebhooksManage), "webhooks.manage"},
			{http.MethodDelete, "webhook-endpoints/00000000-0000-0000-0000-000000000000", all(apikey.WebhooksManage), "webhooks.manage"},
		}
		for _, tt := range tests {
			key := w.newKey(w.taxpayer, fiscal.Sandbox, tt.scopes...)
			r := request{method: tt.method, path: tt.path, key: key}
			if tt.method == http.MethodPost {
				r.idem, r.body = "k", body("unscoped")
			}
			a := w.send(r)
			if a.status != http.StatusForbidden || (tt.method != http.MethodHead && a.code() != "forbidden") {
				t.Errorf("%s %s without %s: %s", tt.method, tt.path, tt.missing, a)
			}
			if got, want := a.header.Get("WWW-Authenticate"), `Bearer error="insufficient_scope", scope="`+tt.missing+`"`; got != want {
				t.Errorf("%s %s: WWW-Authenticate %s, want %s", tt.method, tt.path, got, want)
			}
			w.must(w.credentials().Revoke(t.Context(), w.credentialOf(key).ID)) // a taxpayer has at most 20
		}
	})
}

func joinScopes(scopes []apikey.Scope) string {
	var b strings.Builder
	for _, s := range scopes {
		b.WriteString(string(s) + " ")
	}
	return b.String()
}

// The taxpayer of the path is judged without the database, so one that exists
// and one that does not are answered alike, to the byte.
func TestP09TaxpayersOfOthersAreAllAlike(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		other := w.newTaxpayer()
		owner := w.newKey(other, fiscal.Sandbox, apikey.AllScopes()...)
		made := w.created(w.send(request{method: http.MethodPost, path: "/v1/taxpayers/" + other + "/invoices", key: owner, idem: "k", body: body("complete")}))
		for _, o := range operations(t) {
			if !o.ofTaxpayer() {
				continue
			}
			want := http.StatusForbidden
			if o.named() {
				want = http.StatusNotFound
			}
			resource := made.ID
			if strings.Contains(o.path, "{document_id}") {
				resource = made.FiscalDocumentID
			}
			a := w.send(withID(o.complete(o.at(other, resource))))
			if a.status != want || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s of another taxpayer: %s", o, a)
			}
			for name, id := range map[string]string{
				"one that does not exist": store.NewID(),
				"the nil UUID":            "00000000-0000-0000-0000-000000000000",
				"the max UUID":            "ffffffff-ffff-ffff-ffff-ffffffffffff",
			} {
				if b := w.send(withID(o.complete(o.at(id, resource)))); b.String() != a.String() || len(b.header) != len(a.header) {
					t.Errorf("%s: %s differs from one that exists:\n%s\n%s", o, name, b, a)
				}
			}
		}
	})
}

func TestCredentialsAreBounded(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		terms := access.Terms{TaxpayerID: w.taxpayer, Environment: fiscal.Sandbox, Scopes: []apikey.Scope{apikey.InvoicesRead}}
		var last store.Credential
		for n := 2; n <= 20; n++ { // the world has one
			var err error
			_, last, err = w.credentials().Issue(t.Context(), terms)
			w.must(err)
		}
		issue := func(terms access.Terms) error {
			_, _, err := w.credentials().Issue(t.Context(), terms)
			return err
		}
		if err := issue(terms); !errors.Is(err, store.ErrTooManyCredentials) {
			t.Errorf("the 21st: %v", err)
		}
		elsewhere, others := terms, terms
		elsewhere.Environment, others.TaxpayerID = fiscal.Production, w.newTaxpayer()
		for name, terms := range map[string]access.Terms{"another environment": elsewhere, "another taxpayer": others} {
			if err := issue(terms); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.must(w.credentials().Revoke(t.Context(), last.ID))
		if err := issue(terms); err != nil {
			t.Errorf("after a revocation: %v", err)
		}
		// A leaked key is replaced at once even where there is no room for two.
		if _, _, err := w.credentials().Rotate(t.Context(), w.credentialOf(w.key).ID, 0); err != nil {
			t.Errorf("rotation without an overlap: %v", err)
		}
	})
}
