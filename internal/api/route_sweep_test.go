package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// answer is what a caller must get.
type answer struct {
	status    int
	code      string // of the error
	challenge string // the header WWW-Authenticate
	says      string // a part of the message
}

func noCredential() answer {
	return answer{http.StatusUnauthorized, "unauthorized", `Bearer realm="fh"`, ""}
}

func badCredential() answer {
	return answer{http.StatusUnauthorized, "unauthorized", `Bearer realm="fh", error="invalid_token"`, ""}
}

func refused(says string) answer { return answer{http.StatusForbidden, "forbidden", "", says} }

func absent() answer { return answer{http.StatusNotFound, "not_found", "", ""} }

func malformed() answer { return answer{http.StatusBadRequest, "bad_request", "", ""} }

func missingScopes(scopes ...apikey.Scope) answer {
	list := strings.TrimSpace(joinScopes(scopes))
	return answer{http.StatusForbidden, "forbidden", `Bearer error="insufficient_scope", scope="` + list + `"`, string(scopes[0])}
}

func joinScopes(scopes []apikey.Scope) string {
	var b strings.Builder
	for _, s := range scopes {
		b.WriteString(string(s) + " ")
	}
	return b.String()
}

// caller is one kind of client that no operation of a taxpayer serves.
type caller struct {
	name     string
	key      string // credential; empty: the own key, "-": none
	header   http.Header
	taxpayer string   // in the path; empty: the own one
	ids      []string // of the resources that the path names, one after the other; empty: the own ones

	collection answer // of operations whose path names no resource; zero: they serve the caller
	resource   answer // of operations whose path names a resource
	same       string // callers with the same text get the same bytes
	authorized bool   // credential, scopes and taxpayer are right
}

// sweep sends every operation as every caller.
type sweep struct {
	*tenants
	operations []operation
	keys       map[string]string // by scopes
	requests   int
}

// The operations and their scopes come from the OpenAPI document, so that new ones are
// tested too. Every exchange is compared with the document: an answer whose status the
// operation does not list fails the test.
func TestEveryRouteAnswersEveryCaller(t *testing.T) {
	t.Parallel()
	for environment, other := range map[fiscal.Environment]fiscal.Environment{
		fiscal.Sandbox: fiscal.Certification, fiscal.Certification: fiscal.Production,
	} {
		t.Run(string(environment), func(t *testing.T) {
			t.Parallel()
			storetest.EachAddress(t, func(t *testing.T, address string) {
				s := &sweep{newTenants(t, address, environment, other), operations(t), map[string]string{}, 0}
				for _, o := range s.operations {
					if len(o.scopes) == 0 {
						s.sendPublic(t, o)
						continue
					}
					s.sendRefused(t, o, slices.Concat(s.strangers(t), s.insiders(t), s.withoutScopes(o)))
				}
				s.suspendEnvironment(t)
				s.wantUnchanged(t)
				s.sendServed(t)
				if s.requests < 650 {
					t.Errorf("only %d requests", s.requests)
				}
			})
		})
	}
}

// strangers are callers without a valid credential, and with one that must not be used.
func (s *sweep) strangers(t *testing.T) []caller {
	t.Helper()
	all := []caller{
		{name: "no credential", key: "-", collection: noCredential(), same: "no credential"},
		{name: "another scheme", key: "-", header: http.Header{"Authorization": {"Basic " + s.key}}, collection: noCredential(), same: "no credential"},
		{name: "a malformed key", key: s.key[:40], collection: badCredential()},
		{name: "an unknown key", key: unknownKey(t, s.opt.environment), collection: badCredential()},
		{name: "an unknown key of another environment", key: unknownKey(t, fiscal.Production), collection: badCredential()},
		{name: "a wrong secret", key: forgeKey(t, s.key), collection: badCredential()},
		{name: "a revoked key", key: s.spoiltKey("revoked"), collection: badCredential()},
		{name: "an expired key", key: s.spoiltKey("expired"), collection: badCredential()},
		{name: "a suspended key", key: s.spoiltKey("suspended"), collection: refused("this credential is suspended")},
		{name: "a key for another address", key: s.spoiltKey("address"), collection: refused("address")},
		{name: "a key for another certificate", key: s.spoiltKey("certificate"), collection: refused("certificate")},
		{name: "a key of another environment", key: s.elsewhere.key, collection: refused(string(s.opt.environment))},
	}
	for i := range all {
		all[i].resource = all[i].collection
		if all[i].collection == badCredential() {
			all[i].same = "a bad credential"
		}
	}
	return all
}

// insiders are callers with a valid credential and all scopes, who want what belongs to
// others.
func (s *sweep) insiders(t *testing.T) []caller {
	t.Helper()
	const nilID, maxID = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	suspended := s.keys["suspended taxpayer"]
	if suspended == "" {
		taxpayer := s.newTaxpayer()
		suspended = s.newKey(taxpayer, s.opt.environment, apikey.AllScopes()...)
		s.suspend(store.TaxpayerSubject(taxpayer))
		s.keys["suspended taxpayer"] = suspended
	}
	all := []caller{
		{name: "a suspended taxpayer", key: suspended, taxpayer: s.storedCredential(suspended).TaxpayerID,
			collection: refused("this taxpayer is suspended"), resource: refused("this taxpayer is suspended")},
		{name: "a malformed taxpayer", taxpayer: "me", collection: malformed(), resource: absent()},
		{name: "resources of another taxpayer", ids: s.other.ids(), resource: absent(), same: "an absent resource", authorized: true},
		{name: "resources of another environment", ids: s.elsewhere.ids(), resource: absent(), same: "an absent resource", authorized: true},
		{name: "resources that do not exist", ids: []string{store.NewID(), nilID, maxID}, resource: absent(), same: "an absent resource", authorized: true},
		{name: "malformed resources", ids: []string{"x"}, resource: absent(), same: "an absent resource", authorized: true},
	}
	for name, c := range map[string]caller{
		"another taxpayer":                   {taxpayer: s.other.taxpayer, ids: s.other.ids()},
		"another taxpayer, own resources":    {taxpayer: s.other.taxpayer},
		"a taxpayer that does not exist":     {taxpayer: store.NewID()},
		"the taxpayer of all zeros":          {taxpayer: nilID},
		"the taxpayer of all ones":           {taxpayer: maxID},
		"the key of another taxpayer":        {key: s.other.key},
		"the key and ids of another":         {key: s.other.key, ids: s.other.ids()},
		"another taxpayer by capital digits": {taxpayer: strings.ToUpper(s.other.taxpayer), ids: s.other.ids()},
	} {
		c.name, c.same = name, "another taxpayer, with the key "+c.key // the end of the rate limit's window differs between keys
		c.collection, c.resource = refused("does not give access to this taxpayer"), absent()
		all = append(all, c)
	}
	return all
}

// withoutScopes are callers whose key does not have one scope of an operation, and, when
// it has several, none of them.
func (s *sweep) withoutScopes(o operation) []caller {
	var all []caller
	add := func(missing ...apikey.Scope) {
		rest := slices.DeleteFunc(apikey.AllScopes(), func(s apikey.Scope) bool { return slices.Contains(missing, s) })
		c := caller{name: "a key without " + strings.TrimSpace(joinScopes(missing)), key: s.keyWith(rest...), collection: missingScopes(missing...)}
		c.resource = c.collection
		all = append(all, c)
		c.name, c.taxpayer, c.ids = c.name+" for another taxpayer", s.other.taxpayer, s.other.ids() // the scope is checked first
		all = append(all, c)
	}
	for _, scope := range o.scopes {
		add(scope)
	}
	if len(o.scopes) > 1 {
		add(o.scopes...)
	}
	return all
}

// keyWith returns a key of the own taxpayer. It issues one key for each set of scopes.
func (s *sweep) keyWith(scopes ...apikey.Scope) string {
	name := joinScopes(scopes)
	if s.keys[name] == "" {
		s.keys[name] = s.newKey(s.taxpayer, s.opt.environment, scopes...)
	}
	return s.keys[name]
}

// spoiltKey returns a key of the own taxpayer with all scopes that must not be served.
func (s *sweep) spoiltKey(kind string) string {
	if s.keys[kind] != "" {
		return s.keys[kind]
	}
	terms := access.Terms{TaxpayerID: s.taxpayer, Environment: s.opt.environment, Scopes: apikey.AllScopes()}
	switch kind {
	case "expired":
		terms.ExpiresAt = s.clock.now()
	case "address":
		terms.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	case "certificate":
		terms.ClientCertificates = []string{strings.Repeat("0a", 32)}
	}
	key, made, err := s.credentials().Issue(s.t.Context(), terms)
	s.must(err)
	switch kind {
	case "revoked":
		s.must(s.credentials().Revoke(s.t.Context(), made.ID))
	case "suspended":
		s.suspend(store.CredentialSubject(made.ID))
	}
	s.keys[kind] = key.Reveal()
	return s.keys[kind]
}

// sendRefused sends an operation as callers that it must refuse. No byte of an answer may
// be of an owner.
func (s *sweep) sendRefused(t *testing.T, o operation, callers []caller) {
	t.Helper()
	first := map[string]response{}
	for _, c := range callers {
		want := c.resource
		if !o.named() {
			want, c.ids = c.collection, nil
		}
		if c.authorized && o.webhooks() && s.opt.environment == fiscal.Sandbox {
			want = refused("does not send events")
		}
		if want == (answer{}) {
			continue // sendServed sends it
		}
		if c.ids == nil {
			c.ids = []string{s.own.idFor(o)}
		}
		for _, id := range c.ids {
			what := fmt.Sprintf("%s with %s %s", o, c.name, id)
			a := s.sendAs(o, c, id)
			want.check(t, what, a)
			wantNothingOf(t, what, a, s.own, s.other, s.elsewhere)
			if like, ok := first[c.same]; ok && c.same != "" {
				wantSame(t, what, a, like)
			}
			first[c.same] = a
		}
	}
}

// sendAs sends a valid request of an operation as a caller.
func (s *sweep) sendAs(o operation, c caller, id string) response {
	s.requests++
	if c.taxpayer == "" {
		c.taxpayer = s.taxpayer
	}
	r := withID(o.validRequest(o.pathFor(c.taxpayer, id)))
	r.key = c.key
	for name, values := range c.header {
		r.header[name] = values
	}
	return s.send(r)
}

// idFor returns the resource of an owner that the path of an operation names.
func (o owned) idFor(to operation) string {
	switch {
	case strings.Contains(to.path, "{document_id}"):
		return o.invoices[0].FiscalDocumentID
	case strings.Contains(to.path, "{endpoint_id}"):
		return o.endpoint
	}
	return o.invoices[0].ID
}

func (want answer) check(t *testing.T, what string, a response) {
	t.Helper()
	if a.status != want.status || a.code() != want.code || a.header.Get("WWW-Authenticate") != want.challenge || !strings.Contains(string(a.body), want.says) {
		t.Errorf("%s: %s, WWW-Authenticate %q; want %d %s %q and %q", what, a, a.header.Get("WWW-Authenticate"),
			want.status, want.code, want.challenge, want.says)
	}
}

// wantSame reports what tells two answers apart.
func wantSame(t *testing.T, what string, a, like response) {
	t.Helper()
	a.header, like.header = a.header.Clone(), like.header.Clone()
	a.header.Del("Date")
	like.header.Del("Date")
	if diff := cmp.Diff(like.header, a.header); diff != "" || a.String() != like.String() {
		t.Errorf("%s: %s, want the same as %s\n%s", what, a, like, diff)
	}
}

// suspendEnvironment suspends the environment, sends every operation with the own key,
// and resumes the environment.
func (s *sweep) suspendEnvironment(t *testing.T) {
	t.Helper()
	subject := store.EnvironmentSubject(s.opt.environment)
	s.suspend(subject)
	s.clock.advance(5 * time.Second)
	for _, o := range s.operations {
		if len(o.scopes) > 0 {
			want := refused("the environment " + string(s.opt.environment) + " is suspended")
			s.sendRefused(t, o, []caller{{name: "the own key", collection: want, resource: want}})
		}
	}
	s.resume(subject)
	s.clock.advance(5 * time.Second)
}

// sendPublic sends an operation that needs no API key with and without one. The key must
// make no difference.
func (s *sweep) sendPublic(t *testing.T, o operation) {
	t.Helper()
	type target struct {
		id   string
		want answer
	}
	targets := map[string][]target{
		"GET /v1/openapi.json": {{"", answer{status: http.StatusOK}}},
		"POST /v1/events/inbound/{source_id}": {
			{s.own.source, s.unsigned()}, {s.other.source, s.unsigned()},
			{s.elsewhere.source, absent()}, {store.NewID(), absent()}, {"x", absent()},
		},
	}[o.String()]
	if targets == nil {
		t.Errorf("%s needs no credential, but the sweep has no expected answer", o)
	}
	for _, target := range targets {
		for _, key := range []string{"-", s.key[:40], s.spoiltKey("revoked"), s.elsewhere.key, s.other.key, s.key} {
			what := fmt.Sprintf("%s %s with the key %s", o, target.id, key)
			a := s.sendAs(o, caller{key: key}, target.id)
			target.want.check(t, what, a)
			wantNothingOf(t, what, a, s.own, s.other, s.elsewhere)
		}
	}
}

// unsigned is the answer to a message without a signature for a source that exists. The
// sandbox has no sources.
func (s *sweep) unsigned() answer {
	if s.opt.environment == fiscal.Sandbox {
		return absent()
	}
	return answer{http.StatusUnauthorized, "unauthorized", `Signature realm="fh-inbound"`, ""}
}

// sendServed sends every operation with a key that has exactly its scopes. It must be
// served, or the sweep would not notice a service that refuses everybody. The answers
// have nothing of the other owners.
func (s *sweep) sendServed(t *testing.T) {
	t.Helper()
	for _, o := range s.operations {
		if len(o.scopes) == 0 {
			continue
		}
		a := s.sendAs(o, caller{key: s.keyWith(o.scopes...)}, s.own.idFor(o))
		switch {
		case o.webhooks() && s.opt.environment == fiscal.Sandbox:
			refused("does not send events").check(t, o.String(), a)
		case a.status >= 300 && a.code() != "artifact_not_ready":
			t.Errorf("%s: %s", o, a)
		}
		wantNothingOf(t, o.String(), a, s.other, s.elsewhere)
	}
	for _, theirs := range []owned{s.other, s.elsewhere} {
		for _, list := range []string{"invoices", "fiscal-documents"} {
			path := list + "?external_id=" + theirs.invoices[0].ExternalID
			if a := s.send(request{path: path}); a.status != http.StatusOK || !strings.Contains(string(a.body), `"data":[]`) {
				t.Errorf("%s: %s", path, a)
			}
		}
	}
}
