package fiscal_test

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestParseEnvironment(t *testing.T) {
	t.Parallel()
	for _, e := range []fiscal.Environment{fiscal.Sandbox, fiscal.Certification, fiscal.Production} {
		if got, err := fiscal.ParseEnvironment(string(e)); err != nil || got != e {
			t.Errorf("%s: %s, %v", e, got, err)
		}
	}
	if _, err := fiscal.ParseEnvironment("Sandbox"); err == nil {
		t.Error("Sandbox is accepted")
	}
}
