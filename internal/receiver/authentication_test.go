package receiver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

func valueOf(t testing.TB, document, name string) string {
	t.Helper()
	d, err := xmlsig.Parse([]byte(document), xmlsig.SmallLimits())
	if err != nil {
		t.Fatal(err)
	}
	return d.Root().Child(name).Text()
}

func TestSeedIsNewAndNotStored(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.do(http.MethodGet, seedPath, nil)
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/xml" || !strings.Contains(a.body, "<SemillaModel ") {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	value, err := base64.StdEncoding.DecodeString(valueOf(t, a.body, "valor"))
	if err != nil || len(value) < 32 {
		t.Errorf("%d bytes, %v", len(value), err)
	}
	issued := valueOf(t, a.body, "fecha")
	if at, err := time.Parse(time.RFC3339Nano, issued); err != nil || !strings.HasSuffix(issued, "-04:00") || !at.Equal(e.now().Truncate(time.Microsecond)) {
		t.Errorf("issued at %s: %v", issued, err)
	}
	if again := e.seed(); valueOf(t, again, "valor") == valueOf(t, a.body, "valor") {
		t.Error("two requests got the same seed")
	}
	if len(e.used) > 0 {
		t.Error("a seed that was not used is stored")
	}
}

func TestTokenIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.post(tokenPath, sign(t, peer().Identity, e.seed()))
	var flat map[string]string
	if err := json.Unmarshal([]byte(a.body), &flat); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s %v", a.status, a.body, err)
	}
	token := flat["token"]
	want := map[string]string{
		"token": token, "expira": e.now().Add(time.Hour).UTC().Format(time.RFC3339), "expedido": e.now().UTC().Format(time.RFC3339),
	}
	if diff := cmp.Diff(want, flat); diff != "" || token == "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	for _, path := range []string{receptionPath, approvalPath} {
		document := sign(t, peer().Identity, map[string]string{receptionPath: invoiceXML, approvalPath: responseXML}[path])
		for header, status := range map[string]int{
			"Bearer " + token: 200, "bearer " + token: 200,
			"": 400, "Bearer": 400, "Bearer ": 400, token: 400, "Basic " + token: 400, "Bearer " + token + token: 400,
			"Bearer " + strings.Repeat("A", 2000): 400, "Bearer " + token[:len(token)-1]: 400,
		} {
			if a := e.post(path, document, "Authorization", header); a.status != status {
				t.Errorf("%s with %q: %d %s", path, header, a.status, a.body)
			}
		}
		if a := e.post(path, document, "Authorization", "Bearer "+token, "Authorization", "Bearer "+token); a.status != 400 {
			t.Errorf("two tokens: %d", a.status)
		}
		if a := e.post(path, document); a.status != 200 {
			t.Errorf("no token: %d %s", a.status, a.body)
		}
	}
}

func TestTokenAsXML(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for accept, xml := range map[string]bool{
		"application/xml": true, "text/xml": true, "application/xml, application/json;q=0.5": true, "text/html, application/xml;q=0.9, */*;q=0.8": true,
		"": false, "*/*": false, "application/json": false, "application/json, application/xml": false, "application/xml;q=0.1, application/json": false,
		"application/xml;q=x": false, ";;;,,": false, "application/xml;q=0": false,
	} {
		a := e.post(tokenPath, sign(t, peer().Identity, e.seed()), "Accept", accept)
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if got := a.header.Get("Content-Type") == "application/xml"; got != xml {
			t.Errorf("Accept %q: %s", accept, a.header.Get("Content-Type"))
			continue
		}
		if !xml {
			continue
		}
		if !strings.Contains(a.body, "<RespuestaAutenticacion>") || valueOf(t, a.body, "expira") == "" || valueOf(t, a.body, "expedido") == "" {
			t.Errorf("%s", a.body)
		}
		if a := e.post(approvalPath, sign(t, peer().Identity, responseXML), "Authorization", "Bearer "+valueOf(t, a.body, "token")); a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// Concurrent requests with one seed, in several encodings, get one token.
func TestASeedIsUsedOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	seed := e.seed()
	value := valueOf(t, seed, "valor")
	encodings := []string{
		sign(t, peer().Identity, seed),
		sign(t, peer().Identity, edit(t, seed, value, value[:4]+"\n"+value[4:])), // the same bytes
		sign(t, peer().Identity, edit(t, seed, value, " "+value+" ")),
	}
	var tokens atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		for _, body := range encodings {
			all.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tokenPath, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				res, err := httpClient.Transport.RoundTrip(withHost(r, e.url))
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				switch res.StatusCode {
				case http.StatusOK:
					tokens.Add(1)
				case http.StatusBadRequest:
				default:
					t.Errorf("%d", res.StatusCode)
				}
			})
		}
	}
	all.Wait()
	if n := tokens.Load(); n != 1 || len(e.used) != 1 {
		t.Errorf("%d tokens for one seed, %d seeds stored", n, len(e.used))
	}
	for _, expires := range e.used {
		if left := expires.Sub(e.now()); left < 5*time.Minute || left > 10*time.Minute {
			t.Errorf("stored for %s", left)
		}
	}
}

func withHost(r *http.Request, base string) *http.Request {
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(base, "http://")
	return r
}

func TestInvalidSeedsAreRefused(t *testing.T) {
	t.Parallel()
	other, err := xmlsigtest.NewCA("Tercera Autoridad")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, e *env, seed string) string
	}{
		{"not signed", func(_ *testing.T, _ *env, seed string) string { return seed }},
		{"untrusted signature", func(t *testing.T, _ *env, seed string) string {
			return sign(t, xmlsigtest.Must(t, xmlsigtest.Options{CA: other}).Identity, seed)
		}},
		{"certificate expired", func(t *testing.T, e *env, seed string) string {
			return sign(t, xmlsigtest.Must(t, xmlsigtest.Options{CA: peer().CA, NotAfter: e.now().Add(-time.Second)}).Identity, seed)
		}},
		{"certificate not valid yet", func(t *testing.T, e *env, seed string) string {
			return sign(t, xmlsigtest.Must(t, xmlsigtest.Options{CA: peer().CA, NotBefore: e.now().Add(time.Hour)}).Identity, seed)
		}},
		{"changed after signing", func(t *testing.T, e *env, seed string) string {
			return edit(t, sign(t, peer().Identity, seed), valueOf(t, seed, "valor"), valueOf(t, e.seed(), "valor"))
		}},
		{"an unknown value", resigned(func(t *testing.T, seed string) string {
			return edit(t, seed, valueOf(t, seed, "valor"), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 72)))
		})},
		{"not Base64", resigned(func(t *testing.T, seed string) string { return edit(t, seed, valueOf(t, seed, "valor"), "????") })},
		{"empty", resigned(func(t *testing.T, seed string) string { return edit(t, seed, valueOf(t, seed, "valor"), "") })},
		{"another instant", resigned(func(t *testing.T, seed string) string {
			return edit(t, seed, valueOf(t, seed, "fecha"), "2026-06-01T10:00:00-04:00")
		})},
		{"without an instant", resigned(func(t *testing.T, seed string) string { return edit(t, seed, valueOf(t, seed, "fecha"), "hoy") })},
		{"another root", resigned(func(_ *testing.T, seed string) string { return strings.ReplaceAll(seed, "SemillaModel", "Semilla") })},
		{"one element more", resigned(func(t *testing.T, seed string) string { return edit(t, seed, "</fecha>", "</fecha><otro>1</otro>") })},
		{"one element less", resigned(func(t *testing.T, seed string) string {
			return edit(t, seed, "<fecha>"+valueOf(t, seed, "fecha")+"</fecha>", "")
		})},
		{"empty body", func(*testing.T, *env, string) string { return "" }},
		{"expired", func(t *testing.T, e *env, seed string) string {
			e.advance(5 * time.Minute)
			return sign(t, peer().Identity, seed)
		}},
		{"another environment", func(t *testing.T, _ *env, _ string) string {
			there := newEnv(t, func(o *receiver.Options) { o.Environment = fiscal.Certification })
			return sign(t, peer().Identity, there.seed())
		}},
		{"another key", func(t *testing.T, _ *env, _ string) string {
			there := newEnv(t, func(o *receiver.Options) { o.Keys = keys(8) })
			return sign(t, peer().Identity, there.seed())
		}},
		{"a token as a seed", func(t *testing.T, e *env, seed string) string {
			raw, err := base64.RawURLEncoding.DecodeString(e.token(peer().Identity))
			if err != nil {
				t.Fatal(err)
			}
			clear(e.used)
			return sign(t, peer().Identity, edit(t, seed, valueOf(t, seed, "valor"), base64.StdEncoding.EncodeToString(raw)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			a := e.post(tokenPath, c.spoil(t, e, e.seed()))
			if a.status != http.StatusBadRequest {
				t.Fatalf("%d %s", a.status, a.body)
			}
			a.message(t)
			if c.name != "empty body" && e.wrongSeeds.Load() != 1 {
				t.Errorf("%d signed seeds are reported as refused, want 1", e.wrongSeeds.Load())
			}
			if len(e.used) > 0 {
				t.Error("the seed is stored although it was refused")
			}
		})
	}
}

func resigned(change func(*testing.T, string) string) func(*testing.T, *env, string) string {
	return func(t *testing.T, _ *env, seed string) string { return sign(t, peer().Identity, change(t, seed)) }
}

// A sender may write the instant of a seed in another format.
func TestTheInstantOfASeedMayHaveAnotherFormat(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for name, layout := range map[string]string{"without zeros": "2006-01-02T15:04:05.9999999-07:00", "UTC": "2006-01-02T15:04:05.999999Z07:00"} {
		seed := e.seed()
		at, err := time.Parse(time.RFC3339Nano, valueOf(t, seed, "fecha"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "UTC" {
			at = at.UTC()
		}
		if a := e.post(tokenPath, sign(t, peer().Identity, edit(t, seed, valueOf(t, seed, "fecha"), at.Format(layout)))); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// A seed is valid until its last microsecond.
	seed := e.seed()
	e.advance(5*time.Minute - time.Microsecond)
	if a := e.post(tokenPath, sign(t, peer().Identity, seed)); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestTokenIsUnavailableWithoutTheStore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.seedErr = errors.New("down")
	a := e.post(tokenPath, sign(t, peer().Identity, e.seed()))
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A token contains its certificate and its expiry, and cannot be changed.
func TestAChangedTokenIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	token := e.token(peer().Identity)
	status := func(token string) int {
		return e.do(http.MethodPost, approvalPath, strings.NewReader(sign(t, peer().Identity, responseXML)), "Authorization", "Bearer "+token).status
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		if got := status(base64.RawURLEncoding.EncodeToString(changed)); got != http.StatusBadRequest {
			t.Errorf("byte %d changed: %d", i, got)
		}
	}
	for _, n := range []int{0, 1, 31, 32, 40, len(raw) - 1} {
		if got := status(base64.RawURLEncoding.EncodeToString(raw[:n])); got != http.StatusBadRequest {
			t.Errorf("%d bytes: %d", n, got)
		}
	}
	// Tokens for two certificates of one person differ in the certificate only.
	second := xmlsigtest.Must(t, xmlsigtest.Options{CA: peer().CA})
	other, err := base64.RawURLEncoding.DecodeString(e.token(second.Identity))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(raw[8:40], other[8:40]) || !bytes.Equal(raw[40:len(raw)-32], other[40:len(other)-32]) {
		t.Error("the tokens do not differ in the certificate only")
	}
	mixed := append(append(bytes.Clone(raw[:8]), other[8:40]...), raw[40:]...)
	if got := status(base64.RawURLEncoding.EncodeToString(mixed)); got != http.StatusBadRequest {
		t.Errorf("the certificate of another token: %d", got)
	}
	for name, change := range map[string]func(*receiver.Options){
		"another environment": func(o *receiver.Options) { o.Environment = fiscal.Certification },
		"another key":         func(o *receiver.Options) { o.Keys = keys(8) },
	} {
		there := newEnv(t, change)
		if a := there.post(approvalPath, sign(t, peer().Identity, responseXML), "Authorization", "Bearer "+token); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	e.advance(time.Hour - 2*time.Second)
	if got := status(token); got != http.StatusOK {
		t.Errorf("in its last seconds: %d", got)
	}
	before := e.wrongTokens.Load()
	e.advance(2 * time.Second)
	if got := status(token); got != http.StatusBadRequest {
		t.Errorf("after an hour: %d", got)
	}
	if got := e.wrongTokens.Load() - before; before == 0 || got != 1 {
		t.Errorf("%d expired and %d changed tokens are reported as refused, want 1 and some", got, before)
	}
}

// After a rotation of the key, seeds and tokens of the old key stay valid, and new ones are
// of the new key.
func TestSeedsAndTokensSurviveARotation(t *testing.T) {
	t.Parallel()
	current := keys(7)
	e := newEnv(t, func(o *receiver.Options) { o.Keys = func() [][]byte { return current() } })
	status := func(token string) int {
		return e.post(approvalPath, sign(t, peer().Identity, responseXML), "Authorization", "Bearer "+token).status
	}
	seed, token := e.seed(), e.token(peer().Identity)
	current = keys(8, 7)
	if a := e.post(tokenPath, sign(t, peer().Identity, seed)); a.status != http.StatusOK {
		t.Errorf("a seed of the old key: %d %s", a.status, a.body)
	}
	fresh := e.token(peer().Identity)
	if old, made := status(token), status(fresh); old != http.StatusOK || made != http.StatusOK {
		t.Errorf("a token of the old key: %d, of the new key: %d", old, made)
	}
	current = keys(8)
	if old, made := status(token), status(fresh); old != http.StatusBadRequest || made != http.StatusOK {
		t.Errorf("without the old key, its token: %d, a token of the new key: %d", old, made)
	}
}

func TestATokenExpiresWithItsCertificate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	leaf := xmlsigtest.Must(t, xmlsigtest.Options{CA: peer().CA, NotAfter: e.now().Add(10 * time.Minute)})
	token := e.token(leaf.Identity)
	e.advance(10 * time.Minute)
	if a := e.post(approvalPath, sign(t, peer().Identity, responseXML), "Authorization", "Bearer "+token); a.status != http.StatusBadRequest {
		t.Errorf("%d %s", a.status, a.body)
	}
}
