package dgii

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const holder = "00112345678"

// newSimulator returns a simulator, a client of it and a signer.
func newSimulator(t *testing.T, environment string, clock *fakeClock) (*simulator.Simulator, *Client, *xmlsig.Identity) {
	t.Helper()
	sim, err := simulator.New(simulator.Options{Now: clock.Now, Seed: 1, Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	if err := sim.AddTaxpayer(simulator.Baseline(shipment().RNC, holder, "2027-12-31")); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	hosts, err := SimulatorHosts(server.URL, environment)
	if err != nil {
		t.Fatal(err)
	}
	id, err := sim.Identity(holder)
	if err != nil {
		t.Fatal(err)
	}
	return sim, newClient(t, Options{Hosts: hosts, Now: clock.Now, AllowOrigin: server.URL}), id
}

func addRule(t *testing.T, sim *simulator.Simulator, count int, service simulator.Service, a simulator.Action) {
	t.Helper()
	if _, err := sim.AddRule(simulator.Rule{Match: simulator.Match{Service: service}, Action: a, Count: count}); err != nil {
		t.Fatal(err)
	}
}

// One answer of the authority has a wrong date: the check of the clock goes on with
// the next answer.
func TestClockOfTheSimulatorIsWrongOnce(t *testing.T) {
	t.Parallel()
	clock := newClock()
	sim, c, _ := newSimulator(t, "ecf", clock)
	addRule(t, sim, 1, simulator.Seed, simulator.Action{Fault: "F20", Delay: simulator.Duration(time.Hour)})
	wantError(t, c.CheckClock(testContext(t)), fiscal.ErrUnavailable)
	clock.advance(time.Second)
	if err := c.CheckClock(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if ahead, known := c.Clock(); !known || ahead.Abs() > clockTolerance {
		t.Errorf("Clock() = %v, %v", ahead, known)
	}
}

// The same page is an outage in production and an absence where the authority
// documents one.
func TestPageOfTheSimulator(t *testing.T) {
	t.Parallel()
	sim, c, id := newSimulator(t, "ecf", newClock())
	addRule(t, sim, 1, simulator.Directory, simulator.Action{Fault: "F07", Status: 404})
	_, _, err := c.BuyerEndpoint(testContext(t), id, "101010101")
	wantError(t, err, fiscal.ErrUnavailable)
	_, listed, err := c.BuyerEndpoint(testContext(t), id, "101010101")
	if err != nil || listed {
		t.Errorf("%v, %v", listed, err)
	}
	_, c, id = newSimulator(t, "certecf", newClock())
	_, _, err = c.BuyerEndpoint(testContext(t), id, "101010101")
	wantError(t, err, fiscal.ErrAbsent)
	_, err = c.TrackIDs(testContext(t), id, query())
	wantError(t, err, fiscal.ErrAbsent)
	_, err = c.State(testContext(t), id, query())
	wantError(t, err, fiscal.ErrAbsent)
}
