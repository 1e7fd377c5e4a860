package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/api"
)

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
		if a := s.send(request{method: http.MethodPost, path: path, key: "-"}); a.status != http.StatusMethodNotAllowed {
			t.Errorf("another method: %s", a)
		}
	})
}
