package api_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// sender is where a request comes from.
type sender struct {
	address     string
	forwarded   []string // lines of X-Forwarded-For
	certificate *x509.Certificate
}

// from sends a request to the list of invoices as if it came from a sender.
func (e *env) from(t *testing.T, key string, c sender) response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/taxpayers/"+e.taxpayer+"/invoices", nil)
	r.RemoteAddr = c.address
	r.Header.Set("Authorization", "Bearer "+key)
	if c.forwarded != nil {
		r.Header["X-Forwarded-For"] = c.forwarded
	}
	if c.certificate != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c.certificate}}
	}
	w := httptest.NewRecorder()
	api.NewServer(e.api, slog.New(slog.DiscardHandler)).Handler.ServeHTTP(w, r)
	header := http.Header{}
	for name, values := range w.Header() {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return response{w.Code, header, w.Body.Bytes()}
}

// limitedKey issues a key with limits on its clients.
func (e *env) limitedKey(terms access.Terms) string {
	e.t.Helper()
	terms.TaxpayerID, terms.Environment, terms.Scopes = e.taxpayer, fiscal.Sandbox, apikey.AllScopes()
	key, _, err := e.credentials().Issue(e.t.Context(), terms)
	e.must(err)
	return key.Reveal()
}

func TestACredentialIsLimitedToItsNetworks(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 100}, func(t *testing.T, e *env) {
		key := e.limitedKey(access.Terms{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8:1::/48")}})
		behind := e.withService(t, func(o *api.Options, _ *http.Server) {
			o.Clients = capacity.NewClientFinder([]netip.Prefix{netip.MustParsePrefix("203.0.113.128/25")}, e.opt.now, slog.New(slog.DiscardHandler))
		})
		for _, tt := range []struct {
			name    string
			service *env
			sender  sender
			want    int
		}{
			{"an allowed address", e, sender{address: "203.0.113.9:1"}, 200},
			{"an allowed IPv6 address", e, sender{address: "[2001:db8:1:2::3]:1"}, 200},
			{"an IPv4 address in IPv6 form", e, sender{address: "[::ffff:203.0.113.9]:1"}, 200},
			{"another address", e, sender{address: "203.0.114.9:1"}, 403},
			{"another IPv6 address", e, sender{address: "[2001:db8:2::1]:1"}, 403},
			{"no address", e, sender{address: "pipe"}, 403},
			{"a forged header", e, sender{address: "198.51.100.1:1", forwarded: []string{"203.0.113.9"}}, 403},
			{"an allowed client of a proxy", behind, sender{address: "203.0.113.200:1", forwarded: []string{"203.0.113.9"}}, 200},
			{"another client of a proxy", behind, sender{address: "203.0.113.200:1", forwarded: []string{"198.51.100.1"}}, 403},
			{"a client that sends the header to a proxy", behind, sender{address: "203.0.113.200:1", forwarded: []string{"203.0.113.9, 198.51.100.1"}}, 403},
			{"a proxy that sends no address", behind, sender{address: "203.0.113.200:1", forwarded: []string{"unknown"}}, 403},
			{"the proxy itself", behind, sender{address: "203.0.113.200:1"}, 200},
		} {
			a := tt.service.from(t, key, tt.sender)
			if a.status != tt.want || (tt.want == 403 && a.code() != "forbidden") {
				t.Errorf("%s: want %d, got %s", tt.name, tt.want, a)
			}
			if tt.sender.address != "pipe" {
				wantCommonHeaders(t, e.clock.now(), a)
			}
		}
		if a := e.from(t, e.key, sender{address: "198.51.100.1:1"}); a.status != 200 {
			t.Errorf("a credential without limits: %s", a)
		}
	})
}

// A stolen key that is used elsewhere does not use up the requests of its owner.
func TestRefusedClientsDoNotUseUpTheLimitOfTheCredential(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 5}, func(t *testing.T, e *env) {
		key := e.limitedKey(access.Terms{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
		for range 20 {
			if a := e.from(t, key, sender{address: "198.51.100.1:1"}); a.status != http.StatusForbidden {
				t.Fatalf("from elsewhere: %s", a)
			}
		}
		if a := e.from(t, key, sender{address: "203.0.113.1:1"}); a.status != http.StatusOK || a.header.Get("RateLimit-Remaining") != "4" {
			t.Errorf("the owner: %s %v", a, a.header)
		}
	})
}

func TestACredentialIsLimitedToItsClientCertificates(t *testing.T) {
	eachEngineLogging(t, envOptions{rateLimit: 100}, func(t *testing.T, e *env, log *logBuffer) {
		now := e.clock.now()
		certificate := func(text string, from, until time.Duration) *x509.Certificate {
			return &x509.Certificate{Raw: []byte(text), NotBefore: now.Add(from), NotAfter: now.Add(until)}
		}
		digest := sha256.Sum256([]byte("one"))
		key := e.limitedKey(access.Terms{ClientCertificates: []string{strings.Repeat("0", 64), hex.EncodeToString(digest[:])}})
		for _, tt := range []struct {
			name        string
			certificate *x509.Certificate
			want        int
		}{
			{"its certificate", certificate("one", -time.Hour, time.Hour), 200},
			{"no certificate", nil, 403},
			{"another one", certificate("two", -time.Hour, time.Hour), 403},
			{"expired", certificate("one", -2*time.Hour, -time.Hour), 403},
			{"not yet valid", certificate("one", time.Hour, 2*time.Hour), 403},
		} {
			if a := e.from(t, key, sender{"203.0.113.9:1", nil, tt.certificate}); a.status != tt.want {
				t.Errorf("%s: want %d, got %s", tt.name, tt.want, a)
			}
			if a := e.from(t, e.key, sender{"203.0.113.9:1", nil, tt.certificate}); a.status != 200 {
				t.Errorf("%s, with a credential without limits: %s", tt.name, a)
			}
		}
		if n := strings.Count(log.String(), `"reason":"wrong_certificate","client":"203.0.113.9"`); n != 4 || !strings.Contains(log.String(), `"credential":"`+key[3:15]+`"`) {
			t.Errorf("the log names %d refused requests, want 4:\n%s", n, log)
		}
	})
}
