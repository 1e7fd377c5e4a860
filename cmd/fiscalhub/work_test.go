package main

import (
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// scriptSimulate starts a simulated authority in this process. It drops every
// summary without an answer, so that the outcome of a small invoice stays unknown.
func scriptSimulate(t *testing.T, ts *testscript.TestScript) {
	sim, err := simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Quick()})
	ts.Check(err)
	const person = "00112345678"
	ts.Check(sim.AddTaxpayer(simulator.Baseline("199000013", person, demoExpiry().String())))
	lost := false
	_, err = sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.RFCE}, Action: simulator.Action{Fault: "F02", Store: &lost}})
	ts.Check(err)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(func() {
		sim.Close()
		server.Close()
	})
	certificate, err := sim.IssueCertificate(simulator.CertificateRequest{Holder: person})
	ts.Check(err)
	for name, content := range map[string][]byte{"person.p12": certificate.P12, "person.password": []byte(certificate.Password), "person.roots": sim.RootsPEM()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), content, 0o600))
	}
	ts.Setenv("AUTHORITY", server.URL)
}
