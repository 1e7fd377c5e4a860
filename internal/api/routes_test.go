package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/openapi"
)

func TestParseUUID(t *testing.T) {
	t.Parallel()
	const plain = "0192f3c1-7a4e-7b21-9c55-3d2e8f6a1b40"
	tests := []struct{ name, text, want string }{
		{"plain", plain, plain},
		{"upper case", strings.ToUpper(plain), plain},
		{"version 1", "0192f3c1-7a4e-1b21-9c55-3d2e8f6a1b40", "0192f3c1-7a4e-1b21-9c55-3d2e8f6a1b40"},
		{"version 8", "0192f3c1-7a4e-8b21-bc55-3d2e8f6a1b40", "0192f3c1-7a4e-8b21-bc55-3d2e8f6a1b40"},
		{"all zeros", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"},
		{"all ones", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
		{"version 0", "0192f3c1-7a4e-0b21-9c55-3d2e8f6a1b40", ""},
		{"version 9", "0192f3c1-7a4e-9b21-9c55-3d2e8f6a1b40", ""},
		{"version 15", "0192f3c1-7a4e-fb21-9c55-3d2e8f6a1b40", ""},
		{"variant of Microsoft", "0192f3c1-7a4e-7b21-cc55-3d2e8f6a1b40", ""},
		{"variant of NCS", "0192f3c1-7a4e-7b21-7c55-3d2e8f6a1b40", ""},
		{"variant of the future", "0192f3c1-7a4e-7b21-ec55-3d2e8f6a1b40", ""},
		{"braces", "{" + plain + "}", ""},
		{"urn", "urn:uuid:" + plain, ""},
		{"no hyphens", strings.ReplaceAll(plain, "-", ""), ""},
		{"hyphens elsewhere", "0192f3c17-a4e-7b21-9c55-3d2e8f6a1b40", ""},
		{"a letter that is no digit", "0192f3c1-7a4e-7b21-9c55-3d2e8f6a1b4g", ""},
		{"a space for a digit", " " + plain[1:], ""},
		{"too short", plain[:35], ""},
		{"too long", plain + "0", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseUUID(tt.text)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("parseUUID(%q) = %q, %v; want %q", tt.text, got, ok, tt.want)
			}
		})
	}
}

// The OpenAPI document lists exactly the operations that are served, with the scopes
// that they require.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	type operation struct {
		Security []map[string][]apikey.Scope `json:"security"`
	}
	documented, served := map[string]string{}, map[string]string{}
	for path, item := range document.Paths {
		for method, described := range item {
			if method == "parameters" {
				continue
			}
			var o operation
			if err := json.Unmarshal(described, &o); err != nil {
				t.Fatal(err)
			}
			documented[strings.ToUpper(method)+" "+path] = fmt.Sprint(o.Security)
		}
	}
	for _, r := range (&API{}).table() {
		var o operation
		if r.public == nil {
			o.Security = []map[string][]apikey.Scope{{"bearer": r.scopes}}
		}
		served[r.method+" "+r.name] = fmt.Sprint(o.Security)
	}
	if diff := cmp.Diff(documented, served); diff != "" {
		t.Errorf("(-documented +served):\n%s", diff)
	}
}

// The OpenAPI document lists exactly the kinds of events that exist.
func TestEventKindsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas struct {
				EventKind struct {
					Enum []string `json:"x-extensible-enum"`
				} `json:"EventKind"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	known := append([]string{event.All}, event.Kinds()...)
	slices.Sort(known)
	documented := document.Components.Schemas.EventKind.Enum
	slices.Sort(documented)
	if !slices.Equal(documented, known) {
		t.Errorf("documented:\n%s\nknown:\n%s", strings.Join(documented, "\n"), strings.Join(known, "\n"))
	}
}
