package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type credentialCmd struct {
	Create credentialCreateCmd `cmd:"" help:"Issue an API key. It is shown this once."`
	List   credentialListCmd   `cmd:"" help:"List the credentials, without their keys."`
	Rotate credentialRotateCmd `cmd:"" help:"Issue a successor; the old key ends after the overlap."`
	Revoke credentialRevokeCmd `cmd:"" help:"End a credential now."`
}

// credentialView is a credential in JSON. The key is there only once.
type credentialView struct {
	ID          string             `json:"id"`
	APIKey      string             `json:"api_key,omitempty"`
	Prefix      string             `json:"prefix"`
	TaxpayerID  string             `json:"taxpayer_id"`
	Environment fiscal.Environment `json:"environment"`
	Scopes      []apikey.Scope     `json:"scopes"`
	RateLimit   *int64             `json:"rate_limit"`
	CreatedAt   string             `json:"created_at"`
	ExpiresAt   *string            `json:"expires_at"`
	RevokedAt   *string            `json:"revoked_at"`
	LastUsedAt  *string            `json:"last_used_at"`
}

func newCredentialView(c store.Credential) credentialView {
	v := credentialView{
		ID: c.ID, Prefix: c.Prefix, TaxpayerID: c.TaxpayerID, Environment: c.Environment, Scopes: c.Scopes,
		CreatedAt: moment(c.CreatedAt), ExpiresAt: optionalMoment(c.ExpiresAt),
		RevokedAt: optionalMoment(c.RevokedAt), LastUsedAt: optionalMoment(c.LastUsedAt),
	}
	if c.RateLimit > 0 {
		v.RateLimit = &c.RateLimit
	}
	return v
}

// issued answers with a new credential and its key.
func (t *terminal) issued(key apikey.Key, c store.Credential) error {
	v := newCredentialView(c)
	v.APIKey = key.Reveal()
	return t.answer(v, func(w io.Writer) {
		line(w, "id", v.ID)
		line(w, "api key", v.APIKey)
		line(w, "", "Keep it now: it is not shown again.")
	})
}

// credentials runs fn with what issues and ends credentials.
func (t *terminal) credentials(fn func(*access.Credentials) error) error {
	return t.withStore(func(s *store.Store) error {
		ring, err := t.keyring(s, t.masterKeys())
		if err != nil {
			return err
		}
		return fn(access.NewCredentials(s, ring, time.Now))
	})
}

type credentialCreateCmd struct {
	Taxpayer    string   `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string   `required:"" help:"sandbox, certification or production." enum:"sandbox,certification,production"`
	Scope       []string `required:"" help:"What the key may do, may be repeated: invoices.write, invoices.read, ecf.submit, ecf.read, webhooks.manage." placeholder:"SCOPE"`
	Expires     string   `help:"When the key ends; by default never." placeholder:"RFC3339"`
	RateLimit   int64    `name:"requests-per-minute" help:"A limit of its own; by default the service's." placeholder:"N"`
}

// Run issues a credential.
func (c credentialCreateCmd) Run(t *terminal) error {
	terms := access.Terms{TaxpayerID: c.Taxpayer, Environment: fiscal.Environment(c.Environment), RateLimit: c.RateLimit}
	for _, given := range c.Scope {
		for name := range strings.FieldsFuncSeq(given, func(r rune) bool { return r == ' ' || r == ',' }) {
			scope, err := apikey.ParseScope(name)
			if err != nil {
				return usageError(err.Error())
			}
			terms.Scopes = append(terms.Scopes, scope)
		}
	}
	if c.Expires != "" {
		at, err := time.Parse(time.RFC3339, c.Expires)
		if err != nil {
			return usageError("--expires: want a moment like 2027-12-31T23:59:59Z")
		}
		if !at.After(time.Now()) {
			return fmt.Errorf("--expires: %s is past", c.Expires)
		}
		terms.ExpiresAt = at
	}
	if c.RateLimit < 0 {
		return usageError("--requests-per-minute: want a positive number")
	}
	return t.credentials(func(all *access.Credentials) error {
		key, made, err := all.Issue(t.ctx, terms)
		if err != nil {
			return missing(err, "taxpayer", c.Taxpayer)
		}
		return t.issued(key, made)
	})
}

type credentialListCmd struct{}

// Run lists credentials.
func (credentialListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.Credentials(t.ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		views := make([]credentialView, len(all))
		for i, c := range all {
			views[i] = newCredentialView(c)
		}
		return t.answer(views, func(w io.Writer) {
			for i, c := range all {
				state := "live"
				if !c.Live(now) {
					state = "ended"
				}
				line(w, c.ID, c.Prefix, string(c.Environment), c.TaxpayerID, state, strings.Join(scopeNames(views[i].Scopes), ","))
			}
		})
	})
}

func scopeNames(scopes []apikey.Scope) []string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return names
}

type credentialRotateCmd struct {
	ID      string        `arg:"" help:"Id of the credential."`
	Overlap time.Duration `help:"How long the old key stays good; 0 ends it at once, 720h is the most." default:"24h"`
}

// Run rotates a credential.
func (c credentialRotateCmd) Run(t *terminal) error {
	return t.credentials(func(all *access.Credentials) error {
		key, made, err := all.Rotate(t.ctx, c.ID, c.Overlap)
		if err != nil {
			return missing(err, "credential", c.ID)
		}
		return t.issued(key, made)
	})
}

type credentialRevokeCmd struct {
	ID string `arg:"" help:"Id of the credential."`
}

// Run revokes a credential.
func (c credentialRevokeCmd) Run(t *terminal) error {
	return t.credentials(func(all *access.Credentials) error {
		if err := all.Revoke(t.ctx, c.ID); err != nil {
			return missing(err, "credential", c.ID)
		}
		ended, err := all.Get(t.ctx, c.ID)
		if err != nil {
			return err
		}
		return t.answer(newCredentialView(ended), func(w io.Writer) { line(w, "revoked; no node accepts it after 5 seconds") })
	})
}
