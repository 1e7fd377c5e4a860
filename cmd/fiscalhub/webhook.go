package main

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

type webhookCmd struct {
	Create     webhookCreateCmd     `cmd:"" help:"Add an endpoint. Its secret is shown only this time."`
	List       webhookListCmd       `cmd:"" help:"List the endpoints, without their secrets."`
	Rotate     webhookRotateCmd     `cmd:"" help:"Give an endpoint a new secret; the old secret signs too for the overlap."`
	Enable     webhookEnableCmd     `cmd:"" help:"Send events to a disabled endpoint again."`
	Delete     webhookDeleteCmd     `cmd:"" help:"Delete an endpoint."`
	Test       webhookTestCmd       `cmd:"" help:"Send one test event now."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List the delivery attempts of an endpoint, newest first."`
	Replay     webhookReplayCmd     `cmd:"" help:"Send events again, with the same event ids."`
}

// endpointView is an endpoint in JSON. Secret is set only when it is new.
type endpointView struct {
	ID             string               `json:"id"`
	URL            string               `json:"url"`
	Secret         string               `json:"secret,omitempty"`
	Events         []string             `json:"events"`
	Description    string               `json:"description"`
	TaxpayerID     string               `json:"taxpayer_id"`
	Environment    fiscal.Environment   `json:"environment"`
	Status         store.EndpointStatus `json:"status"`
	DisabledReason *string              `json:"disabled_reason"`
	CreatedAt      string               `json:"created_at"`
	UpdatedAt      string               `json:"updated_at"`
}

func newEndpointView(e store.Endpoint) endpointView {
	return endpointView{
		ID: e.ID, URL: e.URL, Events: e.Kinds, Description: e.Description, TaxpayerID: e.TaxpayerID, Environment: e.Environment,
		Status: e.Status, DisabledReason: optional(e.DisabledReason), CreatedAt: formatTime(e.CreatedAt), UpdatedAt: formatTime(e.UpdatedAt),
	}
}

// answerEndpointSecret prints an endpoint with its new secret.
func (t *terminal) answerEndpointSecret(e store.Endpoint, secret webhook.Secret) error {
	v := newEndpointView(e)
	v.Secret = secret.Reveal()
	return t.answer(v, func(w io.Writer) { printSecret(w, v.ID, v.URL, v.Secret) })
}

// printSecret prints the new secret of an endpoint or of a source.
func printSecret(w io.Writer, id, url, secret string) {
	line(w, "id", id)
	line(w, "url", url)
	line(w, "secret", secret)
	line(w, "", storeNow().In(languageOfWriter(w)))
}

// withEndpoints opens the database and runs fn with the service for endpoints.
func (t *terminal) withEndpoints(f privateFlag, fn func(*notify.Endpoints) error) error {
	guard, err := f.guard()
	if err != nil {
		return err
	}
	return t.withKeys(func(s *store.Store, keys *seal.Keys, _ *access.Keyring) error {
		return useEndpoints(s, keys, guard, fn)
	})
}

// useEndpoints runs fn with the service for endpoints of an open database.
func useEndpoints(s *store.Store, keys *seal.Keys, guard netguard.Guard, fn func(*notify.Endpoints) error) error {
	poster, err := webhook.New(webhook.Options{Now: s.Now, Guard: guard})
	if err != nil {
		return err
	}
	defer poster.Close()
	all, err := notify.NewEndpoints(notify.EndpointsOptions{
		Store: s, Secrets: access.NewSecrets(s, keys), Poster: poster, Guard: guard, Now: s.Now,
	})
	if err != nil {
		return err
	}
	return fn(all)
}

// withEndpoint runs fn with one endpoint of any taxpayer. It fails when there is
// no endpoint with that id.
func (t *terminal) withEndpoint(f privateFlag, id string, fn func(*notify.Endpoints, store.Endpoint) error) error {
	return t.withEndpoints(f, func(all *notify.Endpoints) error {
		e, err := all.Get(t.ctx, id)
		if err == nil {
			err = f.check(e.Environment)
		}
		if err == nil {
			err = fn(all, e)
		}
		return missing(err, "webhook", id)
	})
}

type webhookListCmd struct{}

// Run lists the endpoints of all taxpayers.
func (webhookListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.AllEndpoints(t.ctx)
		if err != nil {
			return err
		}
		views := mapEach(all, newEndpointView)
		b := newTable("WEBHOOK", "ENVIRONMENT", "TAXPAYER", "STATUS", "URL", "EVENTS")
		for _, v := range views {
			status := string(v.Status)
			if v.DisabledReason != nil {
				status += " (" + *v.DisabledReason + ")"
			}
			b.add(v.ID, string(v.Environment), v.TaxpayerID, status, v.URL, strings.Join(v.Events, ","))
		}
		return t.list(views, b)
	})
}

// overlapFlag is how long an old secret stays valid after a rotation.
type overlapFlag struct {
	Overlap time.Duration `help:"How long the old secret stays valid: 0 ends it at once, as after a leak; at most 168h." default:"24h"`
}

type webhookRotateCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
	overlapFlag
}

// Run gives an endpoint a new secret.
func (c webhookRotateCmd) Run(t *terminal) error {
	return t.withEndpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		e, secret, err := all.Rotate(t.ctx, e.Scope, e.ID, c.Overlap)
		if err != nil {
			return err
		}
		return t.answerEndpointSecret(e, secret)
	})
}

type webhookEnableCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
}

// Run enables an endpoint. A running server notices the change.
func (c webhookEnableCmd) Run(t *terminal) error {
	return t.withEndpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		e, err := all.Enable(t.ctx, e.Scope, e.ID)
		if err != nil {
			return err
		}
		return t.confirm(newEndpointView(e), lang.Messagef("enabled; to send the events that it missed, run fiscalhub webhook replay %s --failed",
			"habilitado; para enviar los eventos que perdió, ejecute fiscalhub webhook replay %s --failed", e.ID))
	})
}

type webhookDeleteCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
}

// Run deletes an endpoint.
func (c webhookDeleteCmd) Run(t *terminal) error {
	return t.withEndpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		if err := all.Delete(t.ctx, e.Scope, e.ID); err != nil {
			return err
		}
		v := newEndpointView(e)
		v.Status, v.DisabledReason = "deleted", nil
		return t.confirm(v, lang.Messagef("deleted; the service sends nothing more to it", "eliminado; el servicio no le envía nada más"))
	})
}

type webhookCreateCmd struct {
	Taxpayer    string   `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string   `required:"" help:"certification or production; the sandbox emits no events." enum:"sandbox,certification,production" placeholder:"E"`
	URL         string   `required:"" name:"url" help:"Address that receives the events: https, a public host, port 443." placeholder:"URL"`
	Event       []string `required:"" help:"Kind of event to send, like fiscal_document.accepted; may be repeated; * for all." placeholder:"KIND"`
	privateFlag
}

// Run adds an endpoint.
func (c webhookCreateCmd) Run(t *terminal) error {
	env := fiscal.Environment(c.Environment)
	if env == fiscal.Sandbox {
		return notify.ErrSandbox
	}
	if err := c.check(env); err != nil {
		return err
	}
	kinds, err := eventKinds(c.Event)
	if err != nil {
		return err
	}
	return t.withEndpoints(c.privateFlag, func(all *notify.Endpoints) error {
		made, err := all.Create(t.ctx, notify.EndpointSpec{
			Scope: store.Scope{Environment: env, TaxpayerID: c.Taxpayer}, URL: c.URL, Kinds: kinds,
		}, notify.Intent{})
		if err != nil {
			return missing(flagProblem(err), "taxpayer", c.Taxpayer)
		}
		return t.answerEndpointSecret(made.Endpoint, made.Secret)
	})
}

// eventKinds returns each kind of event once. It returns a usageError for a kind
// that does not exist.
func eventKinds(values []string) ([]string, error) {
	known := event.Kinds()
	var kinds []string
	for _, kind := range splitList(values) {
		if kind != event.All && !slices.Contains(known, kind) {
			return nil, wrongUsage("--event: there is no kind of event %q; use * or some of %s",
				"--event: no existe el tipo de evento %q; use * o algunos de %s", kind, strings.Join(known, ", "))
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// flagProblem turns the problem of a field into an error that names the flag. It
// returns other errors as they are.
func flagProblem(err error) error {
	var problems fiscal.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return err
	}
	return lang.Errorf("--%s %s", "--%s %s", problems[0].Field, problems[0].Message)
}

// privateFlag allows webhooks to addresses that are not public.
type privateFlag struct {
	WebhookAllowPrivate bool `help:"Allow http, private addresses and any port for webhooks. For development and tests, refused in production."`
}

// check returns a usageError when the flag is set in production.
func (f privateFlag) check(env fiscal.Environment) error {
	if f.WebhookAllowPrivate && env == fiscal.Production {
		return wrongUsage("--webhook-allow-private is refused in production: webhooks go to public addresses only",
			"--webhook-allow-private no se admite en production: los webhooks van solo a direcciones públicas")
	}
	return nil
}

// guard returns the rules for webhook addresses. Without the flag it refuses
// addresses that are not public. It always refuses the public addresses of this
// machine, because other services here may trust local callers.
func (f privateFlag) guard() (netguard.Guard, error) {
	g := netguard.Guard{Private: f.WebhookAllowPrivate}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return g, lang.Errorf("the addresses of this machine cannot be read: %s", "no se pueden leer las direcciones de esta máquina: %s", err)
	}
	for _, i := range interfaces {
		network, err := netip.ParsePrefix(i.String())
		if err != nil {
			continue // not an IP address
		}
		if own := network.Addr().Unmap(); (netguard.Guard{}).Addr(own) == nil { // the guard refuses the others anyway
			g.Refuse = append(g.Refuse, netip.PrefixFrom(own, own.BitLen()))
		}
	}
	return g, nil
}
