package main

import (
	"cmp"
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
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
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

// clientOptions are what newClient needs in addition to the flags.
type clientOptions struct {
	roots      *x509.CertPool
	now        func() time.Time    // the clock that all nodes share
	onExchange func(dgii.Exchange) // may be nil
	own        []netip.Prefix      // our own addresses, which are never called as a buyer's
	// noPeerTokens says that the client authenticates to no buyer's receiver; onPeer,
	// which may be nil, is called for every demand of one.
	noPeerTokens bool
	onPeer       func(dgii.PeerOutcome)
	log          *slog.Logger
}

// newClient returns a client of the authority. It measures the authority's clock
// against o.now. The caller closes the client.
func (c liveFlags) newClient(env fiscal.Environment, o clientOptions) (*dgii.Client, error) {
	amb, err := c.authorityEnvironment(env)
	if err != nil {
		return nil, err
	}
	hosts := dgii.ProductionHosts(string(amb))
	if c.Authority != "" {
		if hosts, err = dgii.SimulatorHosts(c.Authority, string(amb)); err != nil {
			return nil, lang.Errorf("--authority: %s", "--authority: %s", err)
		}
	}
	started := time.Now()
	return dgii.New(dgii.Options{
		Hosts: hosts, Now: o.now, Monotonic: func() time.Duration { return time.Since(started) }, Roots: o.roots, Log: o.log,
		Pace: wake.Pace(c.Pace), AllowOrigin: c.Authority, OnExchange: o.onExchange, BlockedPrefixes: o.own,
		NoPeerAuthentication: o.noPeerTokens, OnPeerAuthentication: o.onPeer,
	})
}

// openFence opens the witness file of the environment, and fences the ranges
// whose last number is behind it. It returns nil without a witness: in the
// sandbox, which sends nothing, and with --no-witness. A nil Fence fences nothing.
func (c liveFlags) openFence(t *terminal, env fiscal.Environment, s *store.Store, log *slog.Logger) (*fence.Fence, error) {
	if env == fiscal.Sandbox {
		return nil, nil
	}
	if c.NoWitness {
		log.Warn("The service runs without a witness (--no-witness). After a restore of the database it may issue numbers a second time.")
		return nil, nil
	}
	if err := os.MkdirAll(c.witnessFolder(t), 0o700); err != nil {
		return nil, err
	}
	return fence.Open(t.ctx, fence.Options{
		Store: s, Env: env, Path: c.witnessFile(t, env), Now: s.Now, Log: log, Pace: wake.Pace(c.Pace),
	})
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
