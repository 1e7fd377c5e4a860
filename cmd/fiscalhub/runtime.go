package main

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/watch"
)

// liveFlags are how the live environments speak to the authority.
type liveFlags struct {
	Authority            string  `help:"Base address of a simulator in place of the tax authority's own hosts. The sandbox calls nobody." placeholder:"URL"`
	AuthorityEnvironment string  `help:"The authority's environment, testecf, certecf or ecf; by default certecf in certification and ecf in production." placeholder:"AMB"`
	Trust                string  `help:"Roots in PEM that signatures of others (ARECF, ACECF) must chain to. Without it none is trusted." placeholder:"FILE"`
	NoWitness            bool    `help:"Run without the witness of sent numbers, which tells a restored database; for development."`
	Pace                 float64 `help:"Divides every background wait by N; for development and tests, refused in production." default:"1" placeholder:"N"`
}

// environment is the authority's environment.
func (c liveFlags) authorityEnvironment(env fiscal.Environment) (ecf.Authority, error) {
	switch amb := ecf.Authority(c.AuthorityEnvironment); {
	case amb == "":
		return ecf.AuthorityOf(env), nil
	case env == fiscal.Production && amb != ecf.ProductionAuthority:
		return "", usageError("--authority-environment: production speaks to ecf alone")
	case env == fiscal.Certification && amb == ecf.ProductionAuthority:
		return "", usageError("--authority-environment: certification speaks to certecf or testecf")
	case amb == ecf.TestAuthority, amb == ecf.CertificationAuthority, amb == ecf.ProductionAuthority:
		return amb, nil
	}
	return "", usageError("--authority-environment: want testecf, certecf or ecf")
}

func (c liveFlags) check(env fiscal.Environment) error {
	if c.Pace < 1 {
		return usageError("--pace: want 1 or more")
	}
	if c.Pace > 1 && env == fiscal.Production {
		return usageError("--pace: production keeps its time")
	}
	if c.Authority != "" {
		u, err := url.Parse(c.Authority)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return usageError("--authority: want an address like http://127.0.0.1:9090")
		}
		if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return usageError("--authority: http is for an address of this machine; elsewhere want https")
		}
	}
	_, err := c.authorityEnvironment(env)
	return err
}

// An envRuntime is what the service needs in its environment.
type envRuntime struct {
	pipeline   *pipeline.Pipeline
	inbox      *live.Inbox
	roots      *x509.CertPool // trusted for signatures of others
	identities *access.Certificates
	close      func()
}

// open opens what the environment works with. The caller closes it.
func (c liveFlags) open(env fiscal.Environment, s *store.Store, keys *seal.Keys, f *fence.Fence, e *events, log *slog.Logger) (envRuntime, error) {
	pace := wake.Pace(c.Pace)
	o := pipeline.Options{Store: s, Plan: pipeline.Sandbox{}, Env: env, Now: time.Now, Log: log, Pace: pace, OnCommit: e.committed}
	r := envRuntime{close: func() {}}
	if env != fiscal.Sandbox {
		if err := c.plan(&r, &o, env, s, keys, f, log); err != nil {
			r.close()
			return envRuntime{}, err
		}
	}
	var err error
	if r.pipeline, err = pipeline.New(o); err == nil {
		r.inbox, err = live.NewInbox(live.InboxOptions{Store: s, Env: env, Pipeline: r.pipeline, Now: time.Now, Log: log, Pace: pace, Roots: r.roots})
	}
	if err != nil {
		r.close()
		return envRuntime{}, err
	}
	return r, nil
}

// plan fills in what a live environment needs beside the sandbox: the client of the
// authority, the plan and its watcher.
func (c liveFlags) plan(r *envRuntime, o *pipeline.Options, env fiscal.Environment, s *store.Store, keys *seal.Keys, f *fence.Fence, log *slog.Logger) error {
	if c.Trust == "" {
		log.Warn("No trusted roots are configured (--trust). The service believes no acknowledgement and no response of a buyer.")
	}
	var err error
	if r.roots, err = readRoots(c.Trust); err != nil {
		return err
	}
	client, amb, err := c.client(env, log)
	if err != nil {
		return err
	}
	r.close, r.identities, o.Stamp = client.Close, access.NewCertificates(s, keys, time.Now), amb
	o.Plan, err = live.New(live.Options{
		Store: s, Env: env, Authority: client, Identities: r.identities, Now: time.Now, Log: log, Pace: o.Pace, Fence: f,
	})
	if err != nil {
		return err
	}
	o.Watcher, err = watch.New(watch.Options{
		Store: s, Env: env, Authority: client, Stages: live.WaitingStages(), Now: time.Now, Log: log, Pace: o.Pace,
	})
	return err
}

// client speaks to the authority. It is for the caller to close.
func (c liveFlags) client(env fiscal.Environment, log *slog.Logger) (*dgii.Client, ecf.Authority, error) {
	amb, err := c.authorityEnvironment(env)
	if err != nil {
		return nil, "", err
	}
	roots, err := readRoots(c.Trust)
	if err != nil {
		return nil, "", err
	}
	hosts := dgii.ProductionHosts(string(amb))
	if c.Authority != "" {
		if hosts, err = dgii.SimulatorHosts(c.Authority, string(amb)); err != nil {
			return nil, "", fmt.Errorf("--authority: %w", err)
		}
	}
	client, err := dgii.New(dgii.Options{Hosts: hosts, Now: time.Now, Roots: roots, Log: log, Pace: wake.Pace(c.Pace), AllowOrigin: c.Authority})
	return client, amb, err
}

// fence opens the witness of the environment in the data folder, and fences what
// is behind it. The sandbox sends nothing and has none.
func (c liveFlags) fence(t *terminal, env fiscal.Environment, s *store.Store, log *slog.Logger) (*fence.Fence, error) {
	if env == fiscal.Sandbox {
		return nil, nil
	}
	if c.NoWitness {
		log.Warn("The service runs without a witness (--no-witness). After a restore of the database it may issue numbers a second time.")
		return nil, nil
	}
	return fence.Open(t.ctx, fence.Options{
		Store: s, Env: env, Path: filepath.Join(t.cli.Data, "witness-"+string(env)), Now: time.Now, Log: log,
	})
}
