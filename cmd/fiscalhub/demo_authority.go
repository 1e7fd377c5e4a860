package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// openAuthority starts the simulator with the taxpayers of the demo, and sets the
// expected number of each sample. The caller calls closeIt.
func (d *demo) openAuthority() (address string, closeIt func(), err error) {
	d.sim, err = simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Config{
		CertECFFull: true, ValidationDelay: simulator.Between(200*time.Millisecond, 900*time.Millisecond),
	}})
	if err != nil {
		return "", nil, err
	}
	expires := demoExpiry().String()
	receiver := simulator.Baseline(demoReceiver, "00199000019", expires)
	receiver.Receiver = &simulator.Receiver{}
	for _, taxpayer := range []simulator.Taxpayer{simulator.Baseline(demoIssuer, demoPerson, expires), receiver, simulator.Baseline(demoOther, "00199000027", expires)} {
		if err := d.sim.AddTaxpayer(taxpayer); err != nil {
			return "", nil, err
		}
	}
	next := map[fiscal.Type]int{}
	for _, s := range d.samples {
		next[s.kind]++
		s.encf = fmt.Sprintf("E%s%010d", s.kind, next[s.kind])
		if s.fault == nil {
			continue
		}
		rule := simulator.Rule{Match: simulator.Match{Service: simulator.Reception, ENCF: s.encf}, Action: *s.fault, Count: 1}
		if _, err := d.sim.AddRule(rule); err != nil {
			return "", nil, err
		}
	}
	address, shut, err := listen(d.t.ctx, d.sim.Handler())
	return address, func() {
		d.sim.Close() // first: it ends the requests that the server would wait for
		shut()
	}, err
}

// listen serves on a free port of this machine until closeIt is called.
func listen(ctx context.Context, h http.Handler) (address string, closeIt func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns when the server is closed
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close() // the demo needs no open request any more
		<-done
	}, nil
}

// demoExpiry returns the last day of next year, when a range that the authority
// authorizes today expires.
func demoExpiry() fiscal.Date {
	return fiscal.DateOf(time.Date(fiscal.DateOf(time.Now()).Year()+1, time.December, 31, 12, 0, 0, 0, time.UTC))
}
