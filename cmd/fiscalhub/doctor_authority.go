package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// trustedRoots checks the certificates of --trust.
func (d *doctor) trustedRoots() (string, error) {
	if d.env == fiscal.Sandbox {
		return "the sandbox needs none", nil
	}
	if d.flags.Trust == "" {
		return "", errors.New("no trusted roots are configured, so the service refuses every acknowledgement and response of a buyer: name the file of the roots with --trust")
	}
	rest, err := os.ReadFile(d.flags.Trust)
	if err != nil {
		return "", fmt.Errorf("--trust: %w", err)
	}
	count, now := 0, time.Now()
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("--trust %s: %w", d.flags.Trust, err)
		}
		count++
		if root.NotAfter.Sub(now) < endsSoon {
			return "", fmt.Errorf("the root %s in %s ends on %s: add its successor to the file", root.Subject, d.flags.Trust, formatTime(root.NotAfter))
		}
	}
	if count == 0 {
		return "", fmt.Errorf("--trust %s: the file must contain certificates in PEM", d.flags.Trust)
	}
	return fmt.Sprintf("%d roots", count), nil
}

// reachability asks the tax authority for a seed, twice: two answers confirm its clock.
func (d *doctor) reachability() (string, error) {
	if d.env == fiscal.Sandbox {
		return "the sandbox does not call it", nil
	}
	client, err := d.flags.newClient(d.env, clientOptions{now: time.Now, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	ctx, cancel := d.deadline()
	defer cancel()
	for range 2 {
		if err := client.Probe(ctx); err != nil {
			client.Close()
			return "", fmt.Errorf("the tax authority does not answer: %w; check the network, the proxy and the firewall of this machine", err)
		}
	}
	d.authority = client
	return "it answers", nil
}

const (
	// maxDatabaseSkew is the difference from the database's clock beyond which a node signs
	// and sends nothing.
	maxDatabaseSkew = 5 * time.Second
	// maxAuthoritySkew is the same for the tax authority's clock.
	maxAuthoritySkew = 2 * time.Minute
)

// clock compares the clock of this machine with those of the database and of the tax
// authority.
func (d *doctor) clock() (string, error) {
	if err := checkZone(); err != nil {
		return "", err
	}
	found := []string{"the zone data are right"}
	if d.store != nil && d.store.Shared() {
		if skew, known := d.store.ClockSkew(); known && skew.Abs() > maxDatabaseSkew {
			return "", fmt.Errorf("the clock of this machine is %s ahead of the database's: set the clock; until then this node signs and sends nothing", skew.Round(time.Second))
		}
		found = append(found, "the clock agrees with the database's")
	}
	if d.authority != nil {
		ahead, known := d.authority.Clock()
		switch {
		case known && ahead.Abs() > maxAuthoritySkew:
			return "", fmt.Errorf("the clock of the tax authority is %s ahead of this machine's: set the clock; until then the service signs nothing", ahead.Round(time.Second))
		case known:
			found = append(found, "the clock agrees with the tax authority's")
		}
	}
	return strings.Join(found, ", "), nil
}
