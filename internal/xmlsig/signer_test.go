package xmlsig_test

import (
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// Two holders never have the same identifier, and only a Dominican cédula or RNC is
// digits alone.
func TestSignerIdentifiesTheHolder(t *testing.T) {
	t.Parallel()
	for serial, want := range map[string]string{
		"IDCDO-00112345678": "00112345678",
		"TINDO-131880681":   "131880681",
		"VATDO-131880681":   "131880681",
		"001-1234567-8":     "00112345678",
		"131880681":         "131880681",
		"PASDO-131880681":   "PASDO-131880681",
		"PASUS-00112345678": "PASUS-00112345678",
		"IDCES-00112345678": "IDCES-00112345678",
		"AB1234567":         "AB1234567",
		"CD1234567":         "CD1234567",
	} {
		if got := xmlsig.Signer(xmlsigtest.Must(t, xmlsigtest.Options{SerialNumber: serial}).Certificate); got != want {
			t.Errorf("%q: %q, want %q", serial, got, want)
		}
	}
	seen := map[string]bool{}
	for _, serial := range []string{"-", "IDCDO-", strings.Repeat("9", 65), "a\tb", "ñ"} {
		got := xmlsig.Signer(xmlsigtest.Must(t, xmlsigtest.Options{SerialNumber: serial}).Certificate)
		if !strings.HasPrefix(got, "certificate-") || seen[got] {
			t.Errorf("%q: %q", serial, got)
		}
		seen[got] = true
	}
}
