package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// liveFlags are the flags about the tax authority, for the environments that
// send documents to it.
type liveFlags struct {
	Authority            string  `help:"Base address of a simulator that replaces the hosts of the tax authority. The sandbox does not use it." placeholder:"URL"`
	AuthorityEnvironment string  `help:"Environment of the authority: testecf, certecf or ecf. By default certecf in certification and ecf in production." placeholder:"AMB"`
	Trust                string  `help:"PEM file of the roots that signatures of other parties must chain to: seeds and documents received under /fe/, acknowledgements (ARECF), commercial responses (ACECF). Without it the service trusts none of them, and nobody gets a token under /fe/." placeholder:"FILE"`
	Witness              string  `help:"Folder of the witness, which remembers the numbers that anybody may have seen. Put it on another disk than the database (default: the folder of --data)." placeholder:"DIR"`
	NoWitness            bool    `help:"Run without the witness file, which detects a restored database. For development."`
	Pace                 float64 `help:"Divide every background wait by N. For development and tests, refused in production (default 1)." default:"1" placeholder:"N"`
}

// check returns a usageError when a flag is not valid in an environment.
func (c liveFlags) check(env fiscal.Environment) error {
	if c.Pace < 1 {
		return wrongUsage("--pace must be 1 or more",
			"--pace debe ser 1 o más")
	}
	if c.Pace > 1 && env == fiscal.Production {
		return wrongUsage("--pace must be 1 in production",
			"--pace debe ser 1 en production")
	}
	if c.Authority != "" {
		u, err := url.Parse(c.Authority)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return wrongUsage("--authority must be an address like http://127.0.0.1:9090",
				"--authority debe ser una dirección como http://127.0.0.1:9090")
		}
		if u.User != nil {
			return wrongUsage("--authority must have no user name and no password",
				"--authority no debe tener usuario ni contraseña")
		}
		if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return wrongUsage("--authority must be https, or http at an address of this machine",
				"--authority debe ser https, o http en una dirección de esta máquina")
		}
	}
	_, err := c.authorityEnvironment(env)
	return err
}

// authorityEnvironment returns the environment of the authority that one of ours
// speaks to.
func (c liveFlags) authorityEnvironment(env fiscal.Environment) (ecf.Authority, error) {
	switch amb := ecf.Authority(c.AuthorityEnvironment); {
	case amb == "":
		return ecf.AuthorityOf(env), nil
	case env == fiscal.Production && amb != ecf.ProductionAuthority:
		return "", wrongUsage("--authority-environment must be ecf in production",
			"--authority-environment debe ser ecf en production")
	case env == fiscal.Certification && amb == ecf.ProductionAuthority:
		return "", wrongUsage("--authority-environment must be certecf or testecf in certification",
			"--authority-environment debe ser certecf o testecf en certification")
	case amb == ecf.TestAuthority, amb == ecf.CertificationAuthority, amb == ecf.ProductionAuthority:
		return amb, nil
	}
	return "", wrongUsage("--authority-environment must be testecf, certecf or ecf",
		"--authority-environment debe ser testecf, certecf o ecf")
}

// roots reads the file of --trust. It returns nil without the flag.
func (c liveFlags) roots() (*x509.CertPool, error) { return readRoots(c.Trust) }

// readRoots reads a PEM file of certificates. It returns nil without a path.
func readRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, lang.Errorf("--trust %s: the file must contain certificates in PEM",
			"--trust %s: el archivo debe contener certificados en PEM", path)
	}
	return roots, nil
}

// client returns the options of a client of the authority that measures the authority's
// clock against now.
func (c liveFlags) client(env fiscal.Environment, now func() time.Time, log *slog.Logger) (dgii.Options, error) {
	amb, err := c.authorityEnvironment(env)
	if err != nil {
		return dgii.Options{}, err
	}
	hosts := dgii.ProductionHosts(string(amb))
	if c.Authority != "" {
		if hosts, err = dgii.SimulatorHosts(c.Authority, string(amb)); err != nil {
			return dgii.Options{}, lang.Errorf("--authority: %s", "--authority: %s", err)
		}
	}
	started := time.Now()
	return dgii.Options{
		Hosts: hosts, Now: now, Monotonic: func() time.Duration { return time.Since(started) }, Log: log, Pace: wake.Pace(c.Pace), AllowOrigin: c.Authority,
	}, nil
}

// liveConfig adds to the configuration of a node what the flags say about the authority and
// the witness. The sandbox has neither.
func (c liveFlags) liveConfig(t *terminal, to *node.Config) (err error) {
	if to.Environment == fiscal.Sandbox {
		return nil
	}
	if to.Roots, err = c.roots(); err != nil {
		return err
	}
	if to.Stamp, err = c.authorityEnvironment(to.Environment); err != nil {
		return err
	}
	if to.Authority, err = c.client(to.Environment, to.Store.Now, to.Log); err != nil {
		return err
	}
	to.Authority.BlockedPrefixes = publicAddresses(t.ctx, to.BaseURL)
	to.Witness, err = c.makeWitness(t, to.Environment, to.Log)
	return err
}

// publicAddresses returns the public addresses of the host of a URL. A buyer must not
// make the service call itself. A host that does not resolve has none.
func publicAddresses(ctx context.Context, baseURL string) []netip.Prefix {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil
	}
	found, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		return nil
	}
	var all []netip.Prefix
	for _, text := range found {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsLoopback() || a.IsPrivate() || a.IsUnspecified() {
			continue // never called anyway
		}
		all = append(all, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
	}
	return all
}

// makeWitness returns the witness file of the environment, and makes its folder. It returns
// nothing without a witness: in the sandbox, which sends nothing, and with --no-witness.
func (c liveFlags) makeWitness(t *terminal, env fiscal.Environment, log *slog.Logger) (string, error) {
	if env == fiscal.Sandbox {
		return "", nil
	}
	if c.NoWitness {
		log.Warn("The service runs without a witness (--no-witness). After a restore of the database it may issue numbers a second time.")
		return "", nil
	}
	return c.witnessFile(t, env), os.MkdirAll(c.witnessFolder(t), 0o700)
}

// witnessFolder returns the folder of --witness.
func (c liveFlags) witnessFolder(t *terminal) string { return cmp.Or(c.Witness, t.cli.Data) }

func (c liveFlags) witnessFile(t *terminal, env fiscal.Environment) string {
	return filepath.Join(c.witnessFolder(t), "witness-"+string(env))
}

// liveEnvironment reads the flag --environment of commands that the sandbox has
// no use for. Why says so in the message of the usageError.
func liveEnvironment(flag string, why lang.Message) (fiscal.Environment, error) {
	env := fiscal.Environment(flag)
	if env != fiscal.Certification && env != fiscal.Production {
		return "", wrongUsage("--environment must be certification or production; %s",
			"--environment debe ser certification o production; %s", why)
	}
	return env, nil
}
