package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// trustedRoots checks the certificates of --trust.
func (d *doctor) trustedRoots(context.Context) []checkOutcome {
	const action = "Name a PEM file of the roots that you trust with --trust."
	if d.flags.Trust == "" {
		return failed("No trusted roots are configured: the service refuses every acknowledgement and every response of a buyer.", action)
	}
	rest, err := os.ReadFile(d.flags.Trust)
	if err != nil {
		return failed("The file of the trusted roots cannot be read: "+oneLine(err)+".", action)
	}
	var found []checkOutcome
	if info, err := os.Stat(d.flags.Trust); err == nil && isWritableByOthers(info) {
		found = failed(fmt.Sprintf("Other users may change %s (mode %04o), and so whom the service trusts.", d.flags.Trust, info.Mode().Perm()), "Run chmod 644 "+d.flags.Trust+".")
	}
	count := 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return failed("A certificate in "+d.flags.Trust+" cannot be read: "+oneLine(err)+".", action)
		}
		count++
		switch left := root.NotAfter.Sub(d.now()); {
		case left <= 0:
			found = append(found, warned(fmt.Sprintf("The root %s expired on %s.", root.Subject, formatTime(root.NotAfter)), "Add its successor to "+d.flags.Trust+".")...)
		case left < endsSoon:
			found = append(found, warned(fmt.Sprintf("The root %s expires on %s.", root.Subject, formatTime(root.NotAfter)), "Add its successor to "+d.flags.Trust+".")...)
		}
	}
	if count == 0 {
		return failed("The file "+d.flags.Trust+" contains no certificates in PEM.", action)
	}
	return orPassed(found, "The service trusts "+plural(count, "root", "roots")+" of "+d.flags.Trust+".")
}

// reachability asks the tax authority for a seed, twice: two answers confirm its clock. A
// seed needs no certificate and changes nothing.
func (d *doctor) reachability(ctx context.Context) []checkOutcome {
	client, err := d.flags.newClient(d.env, clientOptions{now: d.now, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return failed("The address of the tax authority cannot be used: "+oneLine(err)+".", "Correct --authority or --authority-environment.")
	}
	for range 2 {
		if err := client.Probe(ctx); err != nil {
			client.Close()
			return failed("The tax authority does not answer: "+oneLine(err)+".",
				"Check the network, the proxy and the firewall of this machine. Signed documents wait and are sent when it answers.")
		}
	}
	d.authority = client
	return passed("The tax authority answers.")
}

const (
	// maxDatabaseSkew is the difference from the database's clock beyond which a node signs
	// and sends nothing.
	maxDatabaseSkew = 5 * time.Second
	// maxAuthoritySkew is the same for the tax authority's clock.
	maxAuthoritySkew = 2 * time.Minute
)

// zone checks that the zone data of this machine are those that the service was made for.
func (d *doctor) zone(context.Context) []checkOutcome {
	if err := checkZone(); err != nil {
		return failed("The zone data of this machine are wrong: "+oneLine(err)+".", "Install the version of the service that knows the new offset, or correct the zone data.")
	}
	return passed("The zone data have America/Santo_Domingo four hours behind UTC.")
}

// databaseClock compares the clock of this machine with that of the database server.
func (d *doctor) databaseClock(context.Context) []checkOutcome {
	if !d.store.Shared() {
		return passed("SQLite uses the clock of this machine.")
	}
	skew, known := d.store.ClockSkew()
	switch {
	case !known:
		return warned("The database server answers too slowly to compare the clocks.", "Check the network between this machine and the database server.")
	case skew.Abs() > maxDatabaseSkew:
		return failed("The clock of this machine is "+ahead(skew)+" the clock of the database server: this node signs and sends nothing.", "Set the clock of this machine, for example with NTP.")
	}
	return passed("The clock of this machine agrees with that of the database server.")
}

// authorityClock compares the clock of this machine with that of the tax authority.
func (d *doctor) authorityClock(context.Context) []checkOutcome {
	if d.authority == nil {
		return warned("Not checked, because the tax authority does not answer.", "Correct the check of the reachability first.")
	}
	offset, known := d.authority.Clock()
	switch {
	case !known:
		return warned("The answers of the tax authority have no usable date.", "Compare the clock of this machine with another source, for example with NTP.")
	case offset.Abs() > maxAuthoritySkew:
		return failed("The clock of this machine is "+ahead(-offset)+" the clock of the tax authority: the service signs nothing.", "Set the clock of this machine, for example with NTP.")
	}
	return passed("The clock of this machine agrees with that of the tax authority.")
}

// ahead describes the difference of a clock from another one.
func ahead(skew time.Duration) string {
	if skew < 0 {
		return skew.Abs().Round(time.Second).String() + " behind"
	}
	return skew.Round(time.Second).String() + " ahead of"
}
