package main

import (
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

type sourceCmd struct {
	Create sourceCreateCmd `cmd:"" help:"Let somebody tell signed events about the documents of a taxpayer. The secret is shown this once."`
	List   sourceListCmd   `cmd:"" help:"List the sources, without their secrets."`
	Rotate sourceRotateCmd `cmd:"" help:"Give a source a new secret; the old one is good for 24 hours more."`
	Revoke sourceRevokeCmd `cmd:"" help:"End a source now."`
}

// inboundFlag is where sources send to.
type inboundFlag struct {
	BaseURL string `name:"base-url" help:"Public address of the service, as in serve." default:"http://127.0.0.1:8080" placeholder:"URL"`
}

func (f inboundFlag) address(id string) string {
	return strings.TrimRight(f.BaseURL, "/") + "/v1/events/inbound/" + id
}

// checkBase tells whether an address can be the service's own.
func checkBase(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return usageError("--base-url: want an address like https://invoices.example")
	}
	return nil
}

// sourceView is a source in JSON. The secret is there only once.
type sourceView struct {
	ID          string             `json:"id"`
	URL         string             `json:"url"`
	Secret      string             `json:"secret,omitempty"`
	Events      []string           `json:"events"`
	TaxpayerID  string             `json:"taxpayer_id"`
	Environment fiscal.Environment `json:"environment"`
	CreatedAt   string             `json:"created_at"`
	RevokedAt   *string            `json:"revoked_at"`
}

func (f inboundFlag) view(s store.Source) sourceView {
	return sourceView{
		ID: s.ID, URL: f.address(s.ID), Events: s.Kinds, TaxpayerID: s.TaxpayerID, Environment: s.Environment,
		CreatedAt: moment(s.CreatedAt), RevokedAt: optionalMoment(s.RevokedAt),
	}
}

// answer tells a source and its new secret.
func (f inboundFlag) answer(t *terminal, s store.Source, secret webhook.Secret) error {
	v := f.view(s)
	v.Secret = secret.Reveal()
	return t.answer(v, func(w io.Writer) {
		line(w, "id", v.ID)
		line(w, "url", v.URL)
		line(w, "secret", v.Secret)
		line(w, "", "Keep it now: it is not shown again.")
	})
}

// sources runs fn with what looks after sources.
func (t *terminal) sources(fn func(*notify.Sources) error) error {
	return t.withStore(func(s *store.Store) error {
		keys := t.masterKeys()
		if _, err := t.keyring(s, keys); err != nil {
			return err
		}
		all, err := notify.NewSources(notify.SourcesOptions{Store: s, Secrets: access.NewSecrets(s, keys), Now: time.Now})
		if err != nil {
			return err
		}
		return fn(all)
	})
}

type sourceCreateCmd struct {
	Taxpayer    string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string `required:"" help:"certification or production; the sandbox takes no events." enum:"sandbox,certification,production" placeholder:"E"`
	inboundFlag
}

// Run makes a source.
func (c sourceCreateCmd) Run(t *terminal) error {
	if err := checkBase(c.BaseURL); err != nil {
		return err
	}
	scope := store.Scope{Environment: fiscal.Environment(c.Environment), TaxpayerID: c.Taxpayer}
	if scope.Environment == fiscal.Sandbox {
		return notify.ErrSandbox
	}
	return t.sources(func(all *notify.Sources) error {
		made, secret, err := all.Create(t.ctx, scope)
		if err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		return c.answer(t, made, secret)
	})
}

type sourceListCmd struct{ inboundFlag }

// Run lists sources.
func (c sourceListCmd) Run(t *terminal) error {
	if err := checkBase(c.BaseURL); err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		all, err := s.Sources(t.ctx)
		if err != nil {
			return err
		}
		views := make([]sourceView, len(all))
		for i, one := range all {
			views[i] = c.view(one)
		}
		return t.answer(views, func(w io.Writer) {
			if len(views) == 0 {
				return
			}
			line(w, "SOURCE", "ENVIRONMENT", "TAXPAYER", "STATE", "URL")
			for _, v := range views {
				state := "live"
				if v.RevokedAt != nil {
					state = "revoked"
				}
				line(w, v.ID, string(v.Environment), v.TaxpayerID, state, v.URL)
			}
		})
	})
}

type sourceRotateCmd struct {
	ID string `arg:"" help:"Id of the source."`
	inboundFlag
}

// Run rotates the secret of a source.
func (c sourceRotateCmd) Run(t *terminal) error {
	if err := checkBase(c.BaseURL); err != nil {
		return err
	}
	return t.sources(func(all *notify.Sources) error {
		source, secret, err := all.Rotate(t.ctx, c.ID)
		if err != nil {
			return missing(err, "source", c.ID)
		}
		return c.answer(t, source, secret)
	})
}

type sourceRevokeCmd struct {
	ID string `arg:"" help:"Id of the source."`
	inboundFlag
}

// Run revokes a source.
func (c sourceRevokeCmd) Run(t *terminal) error {
	if err := checkBase(c.BaseURL); err != nil {
		return err
	}
	return t.sources(func(all *notify.Sources) error {
		if err := all.Revoke(t.ctx, c.ID); err != nil {
			return missing(err, "source", c.ID)
		}
		source, err := all.Get(t.ctx, c.ID)
		if err != nil {
			return err
		}
		return t.answer(c.view(source), func(w io.Writer) { line(w, "revoked; what it sends is refused") })
	})
}
