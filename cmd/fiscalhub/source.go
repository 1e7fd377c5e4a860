package main

import (
	"io"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

type sourceCmd struct {
	Create sourceCreateCmd `cmd:"" help:"Allow a sender to send signed events about the documents of a taxpayer. The secret is shown only this time."`
	List   sourceListCmd   `cmd:"" help:"List the sources, without their secrets."`
	Rotate sourceRotateCmd `cmd:"" help:"Give a source a new secret; the old secret is valid for the overlap."`
	Revoke sourceRevokeCmd `cmd:"" help:"Revoke a source now."`
}

// inboundFlag is the address of the service in the URL of a source.
type inboundFlag struct {
	BaseURL string `name:"base-url" help:"Public address of the service, as in serve (default http://127.0.0.1:8080)." default:"http://127.0.0.1:8080" placeholder:"URL"`
}

// address returns the URL that a source sends its events to.
func (f inboundFlag) address(id string) string {
	return strings.TrimRight(f.BaseURL, "/") + "/v1/events/inbound/" + id
}

// sourceView is a source in JSON. Secret is set only when it is new.
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
		CreatedAt: formatTime(s.CreatedAt), RevokedAt: optionalTime(s.RevokedAt),
	}
}

// answerSecret prints a source with its new secret.
func (f inboundFlag) answerSecret(t *terminal, s store.Source, secret webhook.Secret) error {
	v := f.view(s)
	v.Secret = secret.Reveal()
	if s.Environment == fiscal.Production && strings.HasPrefix(f.BaseURL, "http://127.0.0.1") {
		t.warn(lang.Messagef("this URL works on this machine only; name the public address of the service with --base-url",
			"este URL funciona solo en esta máquina; indique la dirección pública del servicio con --base-url"))
	}
	return t.answer(v, func(w io.Writer) { printSecret(w, v.ID, v.URL, v.Secret) })
}

// withSources checks the base address, opens the database and runs fn with the
// service for sources.
func (f inboundFlag) withSources(t *terminal, fn func(*notify.Sources) error) error {
	if err := checkBaseURL(f.BaseURL); err != nil {
		return err
	}
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) error {
		all, err := notify.NewSources(notify.SourcesOptions{Store: s, Secrets: access.NewSecrets(s, keys), Now: s.Now})
		if err != nil {
			return err
		}
		return fn(all)
	})
}

type sourceCreateCmd struct {
	Taxpayer    string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string `required:"" help:"certification or production; the sandbox receives no events." enum:"sandbox,certification,production" placeholder:"E"`
	inboundFlag
}

// Run adds a source.
func (c sourceCreateCmd) Run(t *terminal) error {
	scope := store.Scope{Environment: fiscal.Environment(c.Environment), TaxpayerID: c.Taxpayer}
	if scope.Environment == fiscal.Sandbox {
		return notify.ErrSandbox
	}
	return c.withSources(t, func(all *notify.Sources) error {
		made, secret, err := all.Create(t.ctx, scope)
		if err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		return c.answerSecret(t, made, secret)
	})
}

type sourceListCmd struct{ inboundFlag }

// Run lists the sources of all taxpayers.
func (c sourceListCmd) Run(t *terminal) error {
	if err := checkBaseURL(c.BaseURL); err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		all, err := s.Sources(t.ctx)
		if err != nil {
			return err
		}
		views := mapEach(all, c.view)
		b := newTable("SOURCE", "ENVIRONMENT", "TAXPAYER", "STATE", "URL")
		for _, v := range views {
			state := lang.Messagef("valid", "vigente")
			if v.RevokedAt != nil {
				state = lang.Messagef("revoked", "revocada")
			}
			b.add(v.ID, string(v.Environment), v.TaxpayerID, state.In(t.language), v.URL)
		}
		return t.list(views, b)
	})
}

type sourceRotateCmd struct {
	ID string `arg:"" help:"Id of the source."`
	overlapFlag
	inboundFlag
}

// Run gives a source a new secret.
func (c sourceRotateCmd) Run(t *terminal) error {
	return c.withSources(t, func(all *notify.Sources) error {
		source, secret, err := all.Rotate(t.ctx, c.ID, c.Overlap)
		if err != nil {
			return missing(err, "source", c.ID)
		}
		return c.answerSecret(t, source, secret)
	})
}

type sourceRevokeCmd struct {
	ID string `arg:"" help:"Id of the source."`
	inboundFlag
}

// Run revokes a source.
func (c sourceRevokeCmd) Run(t *terminal) error {
	return c.withSources(t, func(all *notify.Sources) error {
		if err := all.Revoke(t.ctx, c.ID); err != nil {
			return missing(err, "source", c.ID)
		}
		source, err := all.Get(t.ctx, c.ID)
		if err != nil {
			return err
		}
		return t.confirm(c.view(source), lang.Messagef("revoked; the service refuses its events from now on",
			"revocada; el servicio rechaza sus eventos desde ahora"))
	})
}
