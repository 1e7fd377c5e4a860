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

// withID gives a request a fixed id, so that answers can be compared byte by byte.
func withID(r request) request {
	r.header = r.header.Clone()
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set("X-Request-Id", fixedID)
	return r
}

func TestRequestsWithoutCredentialAreRefused(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		tests := []struct {
			name string
			r    request
		}{
			{"no header", request{path: "invoices"}},
			{"an empty header", request{path: "invoices", header: http.Header{"Authorization": {""}}}},
			{"a scheme alone", request{path: "invoices", header: http.Header{"Authorization": {"Bearer"}}}},
			{"a scheme and spaces", request{path: "invoices", header: http.Header{"Authorization": {"Bearer   "}}}},
			{"another scheme", request{path: "invoices", header: http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}}},
			{"the key as user of another scheme", request{path: "invoices", header: http.Header{"Authorization": {"Token " + e.key}}}},
			{"the key without a scheme", request{path: "invoices", header: http.Header{"Authorization": {e.key}}}},
			{"the key in the query", request{path: "invoices?api_key=" + e.key}},
			{"the key as a token in the query", request{path: "invoices?access_token=" + e.key}},
			{"the key in another header", request{path: "invoices", header: http.Header{"X-Api-Key": {e.key}}}},
			{"the key in the body", request{method: http.MethodPost, path: "invoices", idem: "k", body: []byte(`{"api_key":"` + e.key + `"}`)}},
		}
		for _, tt := range tests {
			tt.r.key = "-"
			a := e.send(tt.r)
			if a.status != http.StatusUnauthorized || a.code() != "unauthorized" {
				t.Errorf("%s: %s", tt.name, a)
			}
			if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="fh"` {
				t.Errorf("%s: WWW-Authenticate %s", tt.name, got)
			}
		}
	})
}

func TestBearerSchemeIsCaseInsensitive(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "bEaReR   "} {
			a := e.send(request{path: "invoices", key: "-", header: http.Header{"Authorization": {scheme + e.key}}})
			if a.status != http.StatusOK {
				t.Errorf("%q: %s", scheme, a)
			}
		}
	})
}

// The database is cut off, so a request that needs it would get 503.
func TestMalformedCredentialsAreRefusedWithoutTheDatabase(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		s, cut := e.breakableStore(t)
		blind := e.withService(t, func(o *api.Options, _ *http.Server) { o.Store = s })
		cut()
		flip := func(at int) string {
			b := []byte(e.key)
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
			{"a character of the checksum changed", []string{flip(len(e.key) - 1)}},
			{"cut short", []string{"Bearer " + e.key[:len(e.key)-1]}},
			{"one character more", []string{"Bearer " + e.key + "0"}},
			{"an unknown environment", []string{"Bearer fh_x" + e.key[4:]}},
			{"in upper case", []string{"Bearer " + strings.ToUpper(e.key)}},
			{"two words", []string{"Bearer " + e.key + " " + e.key}},
			{"10 KB", []string{"Bearer fh_" + strings.Repeat("a", 10_000)}},
			{"good keys in two lines", []string{"Bearer " + e.key, "Bearer " + e.key}},
			{"a good key and another line", []string{"Bearer " + e.key, "Basic dXNlcjpwYXNz"}},
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
		if a := blind.send(request{path: "invoices", key: unknownKey(t, fiscal.Sandbox)}); a.status < 500 {
			t.Errorf("the database is not cut off: %s", a)
		}
	})
}

func TestRotatedCredentialWorksDuringTheOverlap(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		wants := func(key string, status int) {
			t.Helper()
			if a := e.send(request{path: "invoices", key: key}); a.status != status {
				t.Errorf("at %s: want %d, got %s", e.clock.now().Format(time.TimeOnly), status, a)
			}
		}
		old := e.storedCredential(e.key)
		key, made, err := e.credentials().Rotate(t.Context(), old.ID, time.Hour)
		e.must(err)
		next := key.Reveal()
		if len(made.Scopes) != len(old.Scopes) || made.TaxpayerID != old.TaxpayerID || made.Environment != old.Environment {
			t.Errorf("rotated %+v to %+v", old, made)
		}
		rotated := e.clock.now()
		wants(e.key, http.StatusOK)
		wants(next, http.StatusOK)
		e.clock.set(rotated.Add(time.Hour - time.Millisecond))
		wants(e.key, http.StatusOK)
		e.clock.set(rotated.Add(time.Hour))
		wants(e.key, http.StatusUnauthorized)
		wants(next, http.StatusOK)

		// Rotation without overlap, as after a leak. A node caches credentials for 5 seconds.
		key, _, err = e.credentials().Rotate(t.Context(), e.storedCredential(next).ID, 0)
		e.must(err)
		e.clock.advance(5 * time.Second)
		wants(next, http.StatusUnauthorized)
		wants(key.Reveal(), http.StatusOK)

		if _, _, err := e.credentials().Rotate(t.Context(), old.ID, time.Hour); err == nil {
			t.Error("an expired credential was rotated")
		}
	})
}

func TestRotationOverlapHasLimits(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		id := e.storedCredential(e.key).ID
		for _, overlap := range []time.Duration{-time.Second, 30*24*time.Hour + time.Second} {
			if _, _, err := e.credentials().Rotate(t.Context(), id, overlap); err == nil {
				t.Errorf("an overlap of %s was accepted", overlap)
			}
		}
		// Rotation does not extend the life of a credential that expires earlier.
		key, made, err := e.credentials().Issue(t.Context(), access.Terms{
			TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(), ExpiresAt: e.clock.now().Add(time.Minute),
		})
		e.must(err)
		_, _, err = e.credentials().Rotate(t.Context(), made.ID, 24*time.Hour)
		e.must(err)
		e.clock.advance(time.Minute)
		if a := e.send(request{path: "invoices", key: key.Reveal()}); a.status != http.StatusUnauthorized {
			t.Errorf("after its expiry: %s", a)
		}
	})
}

func TestRevokedCredentialIsRefusedOnAnOpenConnection(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		c := e.dial(t)
		text := e.rawRequest(http.MethodGet, "/v1/taxpayers/"+e.taxpayer+"/invoices", e.key)
		if a := c.exchange(t, http.MethodGet, text); a.status != http.StatusOK {
			t.Fatal(a)
		}
		e.must(e.credentials().Revoke(t.Context(), e.storedCredential(e.key).ID))
		e.clock.advance(5 * time.Second)
		if a := c.exchange(t, http.MethodGet, text); a.status != http.StatusUnauthorized {
			t.Errorf("5 seconds after the revocation: %s", a)
		}
		e.must(e.credentials().Revoke(t.Context(), e.storedCredential(e.key).ID)) // a second revocation changes nothing
	})
}

// Guessing the secret of a prefix must not lock its owner out.
func TestWrongSecretDoesNotBlockTheCredential(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		key := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.InvoicesRead)
		for range 3 {
			if a := e.send(request{path: "invoices", key: forgeKey(t, key)}); a.status != http.StatusUnauthorized {
				t.Errorf("wrong secret: %s", a)
			}
			if a := e.send(request{path: "invoices", key: key}); a.status != http.StatusOK {
				t.Errorf("right secret: %s", a)
			}
		}
	})
}

func TestTaxpayerHasAtMostTwentyCredentials(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		terms := access.Terms{TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox, Scopes: []apikey.Scope{apikey.InvoicesRead}}
		var last store.Credential
		for n := 2; n <= 20; n++ { // the environment has one already
			var err error
			_, last, err = e.credentials().Issue(t.Context(), terms)
			e.must(err)
		}
		issue := func(terms access.Terms) error {
			_, _, err := e.credentials().Issue(t.Context(), terms)
			return err
		}
		if err := issue(terms); !errors.Is(err, store.ErrTooManyCredentials) {
			t.Errorf("credential 21: %v", err)
		}
		elsewhere, others := terms, terms
		elsewhere.Environment, others.TaxpayerID = fiscal.Production, e.newTaxpayer()
		for name, terms := range map[string]access.Terms{"another environment": elsewhere, "another taxpayer": others} {
			if err := issue(terms); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		e.must(e.credentials().Revoke(t.Context(), last.ID))
		if err := issue(terms); err != nil {
			t.Errorf("after a revocation: %v", err)
		}
		// A leaked key can be replaced at once even when the limit is reached.
		if _, _, err := e.credentials().Rotate(t.Context(), e.storedCredential(e.key).ID, 0); err != nil {
			t.Errorf("rotation without an overlap: %v", err)
		}
	})
}
