package apikey

import "testing"

func TestParseScope(t *testing.T) {
	t.Parallel()
	want := []string{"invoices.write", "invoices.read", "ecf.submit", "ecf.read", "webhooks.manage"}
	if got := len(AllScopes()); got != len(want) {
		t.Fatalf("there are %d scopes, want %d", got, len(want))
	}
	for _, text := range want {
		if s, err := ParseScope(text); err != nil || string(s) != text {
			t.Errorf("ParseScope(%q) = %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "*", "ECF.READ", "ecf.read ", "invoices"} {
		if s, err := ParseScope(text); err == nil || s != "" {
			t.Errorf("ParseScope(%q) = %q, %v, want an error", text, s, err)
		}
	}
}

func TestAllScopesReturnsANewSlice(t *testing.T) {
	t.Parallel()
	AllScopes()[0] = "changed"
	if AllScopes()[0] != InvoicesWrite {
		t.Error("a caller can change the scopes of other callers")
	}
}
