package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// serveHTTP2 serves the API of an environment over TLS, with HTTP/2.
func (e *env) serveHTTP2(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = api.NewServer(e.api.Handler(e.registry), slog.New(slog.DiscardHandler))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// A body that is too large is refused before the client has sent all of it. The refusal
// arrives whole over HTTP/2 too.
func TestLargeBodyIsRefusedWithAnAnswerOverHTTP2(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		server := e.serveHTTP2(t)
		path := server.URL + "/v1/taxpayers/" + e.taxpayer + "/invoices"
		large := bytes.Repeat([]byte(" "), 8<<20)
		for name, body := range map[string]func() io.Reader{
			"of known length":   func() io.Reader { return bytes.NewReader(large) },
			"of unknown length": func() io.Reader { return io.MultiReader(bytes.NewReader(large)) },
		} {
			for range 3 { // the end of the answer and the end of the stream race
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, path, body())
				e.must(err)
				req.Header = http.Header{"Authorization": {"Bearer " + e.key}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
				resp, err := server.Client().Do(req)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				answer, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				var refused struct{ Error struct{ Code string } }
				if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusRequestEntityTooLarge || err != nil ||
					json.Unmarshal(answer, &refused) != nil || refused.Error.Code != "bad_request" {
					t.Fatalf("%s: %s %s, %v, body %q", name, resp.Proto, resp.Status, err, answer)
				}
			}
		}
	})
}

// curl is another client of HTTP/2 than the one of Go.
func TestLargeBodyIsRefusedWithAnAnswerForCurl(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		needtest.Program(t, "curl")
		server := e.serveHTTP2(t)
		file := filepath.Join(t.TempDir(), "large.json")
		e.must(os.WriteFile(file, bytes.Repeat([]byte(" "), 8<<20), 0o600))
		for i := range 4 {
			key, want := e.key, `"code":"bad_request"`
			if i == 3 { // refused before the body is looked at
				key, want = "none", `"code":"unauthorized"`
			}
			out, err := exec.CommandContext(t.Context(), "curl", "-sS", "-k", "--http2", "-w", " %{http_version} %{http_code}",
				"-H", "Authorization: Bearer "+key, "-H", "Content-Type: application/json", "-H", "Idempotency-Key: k",
				"--data-binary", "@"+file, server.URL+"/v1/taxpayers/"+e.taxpayer+"/invoices").CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte(want)) || !bytes.Contains(out, []byte(" 2 4")) {
				t.Fatalf("%v: %s", err, out)
			}
		}
	})
}

// Every answer says that its type is not to be guessed and, over TLS, that plain HTTP is
// not to be used.
func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		secure := e.serveHTTP2(t)
		for base, transport := range map[string]string{e.base: "", secure.URL: "max-age=63072000"} {
			for _, path := range []string{"/livez", "/readyz", "/metrics", "/docs", "/v1/openapi.json", "/nothing"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
				e.must(err)
				resp, err := secure.Client().Do(req)
				e.must(err)
				_ = resp.Body.Close()
				for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Strict-Transport-Security": transport} {
					if got := resp.Header.Get(name); got != want {
						t.Errorf("%s%s: %s is %q, want %q", base, path, name, got, want)
					}
				}
			}
		}
	})
}
