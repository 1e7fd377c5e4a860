package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

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
