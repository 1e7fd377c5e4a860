package simulator_test

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

func TestOnlyValidCertificatesGetTokens(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for flavour, want := range map[string]int{"": 200, "pbes2": 200, "legacy": 200, "expired": 400, "wrong-ca": 400} {
		c, err := e.IssueCertificate(simulator.CertificateRequest{Holder: person, Flavour: flavour})
		must(t, err)
		if a := e.authenticate(seedURL, tokenURL, openCertificate(t, c)); a.status != want {
			t.Errorf("%s: %d %s", flavour, a.status, a.body)
		}
	}
	if _, err := e.IssueCertificate(simulator.CertificateRequest{Holder: person, Flavour: "rsa1024"}); err != nil {
		t.Error(err)
	}
}

func openCertificate(t testing.TB, c *simulator.Certificate) *xmlsig.Identity {
	t.Helper()
	id, err := xmlsig.OpenP12(c.P12, c.Password)
	must(t, err)
	return id
}
