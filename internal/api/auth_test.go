package api_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
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
			wantCode(t, tt.name, a, http.StatusUnauthorized, "unauthorized")
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
			wantCode(t, tt.name, a, http.StatusUnauthorized, "unauthorized")
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
		wantStatus(t, "after its expiry", e.send(request{path: "invoices", key: key.Reveal()}), http.StatusUnauthorized)
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
		wantStatus(t, "5 seconds after the revocation", c.exchange(t, http.MethodGet, text), http.StatusUnauthorized)
		e.must(e.credentials().Revoke(t.Context(), e.storedCredential(e.key).ID)) // a second revocation changes nothing
	})
}

// Guessing the secret of a prefix must not lock its owner out.
func TestWrongSecretDoesNotBlockTheCredential(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		key := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.InvoicesRead)
		for range 3 {
			wantStatus(t, "wrong secret", e.send(request{path: "invoices", key: forgeKey(t, key)}), http.StatusUnauthorized)
			wantStatus(t, "right secret", e.send(request{path: "invoices", key: key}), http.StatusOK)
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

// Requests with one key that come at the same time take one slot for its look-up,
// whatever happens to the first of them.
func TestOneLookUpServesManyRequests(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		limits := capacity.DefaultLimits(1<<30, 2)
		limits.StrangerSlots, limits.AddressSlots, limits.SlotPatience = 1, 1, time.Minute
		lookups := capacity.New(limits)
		narrow := e.withService(t, func(o *api.Options, _ *http.Server) { o.Capacity = lookups })
		busy, err := lookups.TakeSlot(t.Context(), capacity.Holder{Address: "127.0.0.1"})
		e.must(err)
		key := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		get := func(ctx context.Context, key string) (int, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, narrow.base+"/v1/taxpayers/"+e.taxpayer+"/invoices", nil)
			if err != nil {
				return 0, err
			}
			r.Header.Set("Authorization", "Bearer "+key)
			a, err := e.client.Do(r)
			if err != nil {
				return 0, err
			}
			return a.StatusCode, a.Body.Close()
		}

		// The first client has a wrong secret and leaves while it waits for the slot.
		leaving, leave := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		clients.Go(func() { _, _ = get(leaving, forgeKey(t, key)) })
		eventually(t, "the first request waits", func() bool { return narrow.waiting("stranger_slots") == 1 })
		for range 50 {
			clients.Go(func() {
				if status, err := get(t.Context(), key); status != http.StatusOK || err != nil {
					t.Errorf("a valid key: %d %v", status, err)
				}
			})
		}
		eventually(t, "all requests have arrived", func() bool { return narrow.inFlight() == 51 })
		if n := narrow.waiting("stranger_slots"); n != 1 {
			t.Errorf("%d look-ups of one key", n)
		}
		leave()
		busy.Release()
		clients.Wait()
	})
}

// waiting returns how many requests wait for a part of the capacity.
func (e *env) waiting(part string) int {
	for _, u := range e.capacity.Usage() {
		if u.Name == part {
			return u.Waiting
		}
	}
	return 0
}

// suspend suspends a credential, a taxpayer or an environment.
func (e *env) suspend(subject store.Subject) {
	e.t.Helper()
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error {
		return tx.Suspend(e.t.Context(), store.Suspension{Subject: subject, Reason: "a leak", At: e.clock.now()})
	}))
}

func (e *env) resume(subject store.Subject) {
	e.t.Helper()
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.Resume(e.t.Context(), subject) }))
}

// A suspended credential, taxpayer or environment gets 403 within 5 seconds, on every
// node, and works again within 5 seconds after it was resumed. The sweep of all routes
// shows that every operation is refused.
func TestASuspensionTakesEffectOnEveryNodeWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{clock: newClock(), masterKey: filepath.Join(t.TempDir(), "master.key")}
		e := newEnv(t, address, opt)
		node := newNode(t, address, opt)
		node.taxpayer, node.key = e.taxpayer, e.key
		other := e.newKey(e.newTaxpayer(), fiscal.Sandbox, apikey.AllScopes()...)
		id := e.storedCredential(e.key).ID
		for _, subject := range []store.Subject{
			store.CredentialSubject(id), store.TaxpayerSubject(e.taxpayer), store.EnvironmentSubject(fiscal.Sandbox),
		} {
			e.suspend(subject)
			e.clock.advance(5 * time.Second)
			for _, n := range []*env{e, node} {
				if a := n.send(request{path: "invoices"}); a.status != http.StatusForbidden || !strings.Contains(string(a.body), "suspended") {
					t.Errorf("%s suspended: %s", subject.Kind(), a)
				}
			}
			want := http.StatusForbidden // of another taxpayer
			if subject.Kind() == "environment" {
				if a := e.send(request{path: "invoices", key: other}); a.status != want || !strings.Contains(string(a.body), "suspended") {
					t.Errorf("%s suspended, another taxpayer: %s", subject.Kind(), a)
				}
			}
			e.resume(subject)
			e.clock.advance(5 * time.Second)
			for _, n := range []*env{e, node} {
				if a := n.send(request{path: "invoices"}); a.status != http.StatusOK {
					t.Errorf("%s resumed: %s", subject.Kind(), a)
				}
			}
		}
	})
}

// The use of a suspended key is recorded like that of a revoked one. A suspended taxpayer
// is expected to go on for a while, so its keys are only logged and counted.
func TestTheUseOfASuspendedKeyIsRecorded(t *testing.T) {
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		id := e.storedCredential(e.key).ID
		used := func(subject store.Subject) (entries int) {
			t.Helper()
			e.suspend(subject)
			e.clock.advance(5 * time.Second)
			for range 3 {
				e.send(request{path: "invoices"})
			}
			e.resume(subject)
			e.Pipeline.Journal().Flush(t.Context())
			all, err := e.store.AuditEntries(t.Context(), store.AuditFilter{Actor: "credential:" + id}, 0, 10)
			e.must(err)
			return len(all)
		}
		if n := used(store.TaxpayerSubject(e.taxpayer)); n != 0 {
			t.Errorf("a suspended taxpayer: %d entries", n)
		}
		if n := used(store.CredentialSubject(id)); n != 1 {
			t.Errorf("a suspended credential: %d entries, want 1", n)
		}
		lines := refusedLines(t, log)
		if len(lines) != 6 || lines[0].Reason != "suspended" || lines[0].Prefix != e.key[3:15] || e.refusedTotal(t, "suspended") != 6 {
			t.Errorf("the log has %+v", lines)
		}
	})
}
