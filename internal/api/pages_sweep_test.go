package api_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/api"
)

// otherPage is a path that the OpenAPI document does not have, and what it answers to GET.
type otherPage struct {
	path     string
	local    int // to a client on the same machine
	stranger int // to any other client
}

// otherPages lists what the service serves beside the API, and paths that clients try.
func otherPages() []otherPage {
	const ok, absent = http.StatusOK, http.StatusNotFound
	return []otherPage{
		{"/livez", ok, ok},
		{"/readyz", ok, ok},
		{"/metrics", ok, absent},
		{"/docs", ok, ok},
		{"/docs/", ok, ok},
		{"/docs/page.js", ok, ok},
		{"/docs/page.css", ok, ok},
		{"/docs/nothing", absent, absent},
		{"/.well-known/security.txt", ok, ok},
		{"/", absent, absent},
		{"/v1", absent, absent},
		{"/v1/taxpayers", absent, absent},
		{"/openapi.json", absent, absent},
		{"/openapi.yaml", absent, absent},
		{"/v1/openapi.yaml", absent, absent},
		{"/debug/pprof/", absent, absent},
		{"/fe/autenticacion/api/semilla", absent, absent}, // the receiver is another handler
	}
}

// Pages need no credential and show nothing of a taxpayer. A key changes nothing.
func TestPagesAnswerStrangers(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, plain *env) {
		own := plain.addData("own", 1)
		e := plain.withService(t, func(o *api.Options, _ *http.Server) { o.SecurityContacts = []string{"mailto:a@palma.example"} })
		for _, p := range otherPages() {
			for _, key := range []string{"", "Bearer x", "Bearer " + e.key} {
				for host, want := range map[string]int{"": p.local, "invoices.example": p.stranger} {
					for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"} {
						if key != "" && method != "GET" {
							continue
						}
						what := method + " " + p.path + " of host " + host
						a := e.getPage(t, method, p.path, host, key)
						read := method == "GET" || method == "HEAD"
						switch served := want == http.StatusOK || strings.HasPrefix(p.path, "/docs/"); {
						case (read || !served) && a.status != want:
							t.Errorf("%s: %.200s, want %d", what, a, want)
						case !read && served && (a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, HEAD"):
							t.Errorf("%s: %.200s, Allow %q, want 405", what, a, a.header.Get("Allow"))
						}
						wantNothingOf(t, what, a, own)
					}
				}
			}
		}
	})
}

// getPage sends a request without a body to a page.
func (e *env) getPage(t *testing.T, method, path, host, authorization string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.base+path, nil)
	e.must(err)
	req.Host = host
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := e.client.Do(req)
	e.must(err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	e.must(err)
	return response{resp.StatusCode, resp.Header, text}
}

// The file has the fields of RFC 9116 and never expires while the service runs.
func TestSecurityTextIsValidWhileTheServiceRuns(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		const path = "/.well-known/security.txt"
		if a, err := e.getPlain(t, path); err != nil || a.status != http.StatusNotFound {
			t.Errorf("without a contact: %s, %v", a, err)
		}
		contacts := []string{"mailto:seguridad@palma.example", "https://palma.example/seguridad"}
		s := e.withService(t, func(o *api.Options, _ *http.Server) { o.SecurityContacts = contacts })
		for range 2 {
			a, err := s.getPlain(t, path)
			if err != nil || a.status != http.StatusOK || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Fatalf("%s %v, %v", a, a.header, err)
			}
			fields := map[string][]string{}
			for line := range strings.Lines(string(a.body)) {
				name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
				if !ok || value == "" {
					t.Errorf("the line %q is no field", line)
				}
				fields[name] = append(fields[name], value)
			}
			want := map[string][]string{
				"Contact": contacts, "Expires": fields["Expires"], "Preferred-Languages": {"es, en"},
				"Canonical": {"https://invoices.example" + path},
			}
			if diff := cmp.Diff(want, fields); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			expires, err := time.Parse(time.RFC3339, slices.Concat(fields["Expires"], []string{""})[0])
			if left := expires.Sub(e.clock.now()); err != nil || len(fields["Expires"]) != 1 || left < 30*24*time.Hour || left > 365*24*time.Hour {
				t.Errorf("it expires at %v, %v", fields["Expires"], err)
			}
			e.clock.advance(400 * 24 * time.Hour)
		}
		wantStatus(t, "another method", s.send(request{method: http.MethodPost, path: path, key: "-"}), http.StatusMethodNotAllowed)
	})
}
