package simulator_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// A test of a client starts a simulator, adds an issuer, and makes the first post of a
// number lose its response.
func Example() {
	sim, err := simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Quick()})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(sim.Handler())
	defer server.Close()
	defer sim.Close() // runs before server.Close, which waits for calls that a fault keeps waiting

	_ = sim.AddTaxpayer(simulator.Baseline("199000013", "00113918205", "2030-12-31"))
	_ = sim.AddTaxpayer(simulator.Taxpayer{RNC: "199000021", Name: "Comprador", Receiver: &simulator.Receiver{}})
	certificate, _ := sim.IssueCertificate(simulator.CertificateRequest{Holder: "00113918205"})
	_, _ = sim.AddRule(simulator.Rule{
		Match:  simulator.Match{Service: simulator.Reception, ENCF: "E310000000001", Attempt: 1},
		Action: simulator.Action{Fault: "F02"},
		Count:  1,
	})

	// Here the client would call server.URL, sign with certificate.P12 and trust
	// sim.RootsPEM().
	fmt.Println(len(certificate.P12) > 0, certificate.Password)

	sim.Advance(time.Hour)
	for _, d := range sim.Documents(simulator.Filter{Amb: simulator.CertECF, RNC: "199000013"}) {
		fmt.Println(d.ENCF, d.State)
	}
	fmt.Println(sim.Violations())
	// Output:
	// true simulador
	// []
}
