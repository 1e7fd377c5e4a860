package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

type webhookCmd struct {
	Create     webhookCreateCmd     `cmd:"" help:"Add an endpoint that is told of events. Its secret is shown this once."`
	List       webhookListCmd       `cmd:"" help:"List the endpoints, without their secrets."`
	Rotate     webhookRotateCmd     `cmd:"" help:"Give an endpoint a new secret; the old one signs as well for 24 hours."`
	Enable     webhookEnableCmd     `cmd:"" help:"Have a disabled endpoint told of events again."`
	Delete     webhookDeleteCmd     `cmd:"" help:"End an endpoint for good."`
	Test       webhookTestCmd       `cmd:"" help:"Post an event that is of no consequence, once."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"List the attempts to tell an endpoint something, the newest first."`
	Replay     webhookReplayCmd     `cmd:"" help:"Have an endpoint told of events once more, under the ids that they have."`
}

// privateFlag lets webhooks go to addresses that are not public.
type privateFlag struct {
	WebhookAllowPrivate bool `help:"Allow http, private addresses and any port as webhook targets; for development and tests, refused in production."`
}

func (f privateFlag) check(env fiscal.Environment) error {
	if f.WebhookAllowPrivate && env == fiscal.Production {
		return usageError("--webhook-allow-private: production tells public servers alone")
	}
	return nil
}

// guard keeps webhooks away from what is not public, and from this machine
// itself: what it serves may trust who calls from here.
func (f privateFlag) guard() (netguard.Guard, error) {
	g := netguard.Guard{Private: f.WebhookAllowPrivate}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return g, fmt.Errorf("the addresses of this machine: %w", err)
	}
	for _, i := range interfaces {
		network, err := netip.ParsePrefix(i.String())
		if err != nil {
			continue // no address of the Internet protocol
		}
		if own := network.Addr().Unmap(); (netguard.Guard{}).Addr(own) == nil { // the others are refused anyway
			g.Refuse = append(g.Refuse, netip.PrefixFrom(own, own.BitLen()))
		}
	}
	return g, nil
}

// endpointView is an endpoint in JSON. The secret is there only once.
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
		Status: e.Status, DisabledReason: optional(e.DisabledReason), CreatedAt: moment(e.CreatedAt), UpdatedAt: moment(e.UpdatedAt),
	}
}

// newSecret answers with an endpoint and its new secret.
func (t *terminal) newSecret(e store.Endpoint, secret webhook.Secret) error {
	v := newEndpointView(e)
	v.Secret = secret.Reveal()
	return t.answer(v, func(w io.Writer) {
		line(w, "id", v.ID)
		line(w, "url", cell(v.URL))
		line(w, "secret", v.Secret)
		line(w, "", "Keep it now: it is not shown again.")
	})
}

// endpoints runs fn with what looks after endpoints.
func (t *terminal) endpoints(f privateFlag, fn func(*notify.Endpoints) error) error {
	guard, err := f.guard()
	if err != nil {
		return err
	}
	return t.withStore(func(s *store.Store) error {
		keys := t.masterKeys()
		if _, err := t.keyring(s, keys); err != nil {
			return err
		}
		poster, err := webhook.New(webhook.Options{Now: time.Now, Guard: guard})
		if err != nil {
			return err
		}
		defer poster.Close()
		all, err := notify.NewEndpoints(notify.EndpointsOptions{
			Store: s, Secrets: access.NewSecrets(s, keys), Poster: poster, Guard: guard, Now: time.Now,
		})
		if err != nil {
			return err
		}
		return fn(all)
	})
}

// endpoint runs fn with one endpoint, of whichever taxpayer it is.
func (t *terminal) endpoint(f privateFlag, id string, fn func(*notify.Endpoints, store.Endpoint) error) error {
	return t.endpoints(f, func(all *notify.Endpoints) error {
		e, err := all.Get(t.ctx, id)
		if err == nil {
			err = f.check(e.Environment)
		}
		if err != nil {
			return missing(err, "webhook", id)
		}
		return missing(fn(all, e), "webhook", id)
	})
}

type webhookCreateCmd struct {
	Taxpayer    string   `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment string   `required:"" help:"certification or production; the sandbox emits no events." enum:"sandbox,certification,production" placeholder:"E"`
	URL         string   `required:"" name:"url" help:"Where to post: https, a public host, port 443." placeholder:"URL"`
	Event       []string `required:"" help:"Kind of event to tell, as in fiscal_document.accepted, may be repeated; * for all." placeholder:"KIND"`
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
	n := notify.NewEndpoint{Scope: store.Scope{Environment: env, TaxpayerID: c.Taxpayer}, URL: c.URL}
	known := event.Kinds()
	for _, given := range c.Event {
		for kind := range strings.FieldsFuncSeq(given, func(r rune) bool { return r == ' ' || r == ',' }) {
			if kind != event.All && !slices.Contains(known, kind) {
				return usageError("--event: " + strconv.Quote(kind) + " is no kind of event: want * or some of " + strings.Join(known, ", "))
			}
			if !slices.Contains(n.Kinds, kind) {
				n.Kinds = append(n.Kinds, kind)
			}
		}
	}
	return t.endpoints(c.privateFlag, func(all *notify.Endpoints) error {
		made, err := all.Create(t.ctx, n, notify.Intent{})
		if err != nil {
			return missing(plainProblem(err), "taxpayer", c.Taxpayer)
		}
		return t.newSecret(made.Endpoint, made.Secret)
	})
}

// plainProblem is what is wrong with what somebody has typed, in the words of
// the command line.
func plainProblem(err error) error {
	var problems fiscal.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		return err
	}
	return fmt.Errorf("--%s %s", problems[0].Field, problems[0].Message)
}

type webhookListCmd struct{}

// Run lists endpoints.
func (webhookListCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		all, err := s.AllEndpoints(t.ctx)
		if err != nil {
			return err
		}
		views := make([]endpointView, len(all))
		for i, e := range all {
			views[i] = newEndpointView(e)
		}
		return t.answer(views, func(w io.Writer) {
			if len(views) == 0 {
				return
			}
			line(w, "WEBHOOK", "ENVIRONMENT", "TAXPAYER", "STATUS", "URL", "EVENTS")
			for _, v := range views {
				status := string(v.Status)
				if v.DisabledReason != nil {
					status += " (" + cell(*v.DisabledReason) + ")"
				}
				line(w, v.ID, string(v.Environment), v.TaxpayerID, status, clip(v.URL), clip(strings.Join(v.Events, ",")))
			}
		})
	})
}

type webhookRotateCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
}

// Run rotates the secret of an endpoint.
func (c webhookRotateCmd) Run(t *terminal) error {
	return t.endpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		e, secret, err := all.Rotate(t.ctx, e.Scope, e.ID)
		if err != nil {
			return err
		}
		return t.newSecret(e, secret)
	})
}

type webhookEnableCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
}

// Run enables an endpoint. A running server sees it by itself.
func (c webhookEnableCmd) Run(t *terminal) error {
	return t.endpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		e, err := all.Enable(t.ctx, e.Scope, e.ID)
		if err != nil {
			return err
		}
		return t.answer(newEndpointView(e), func(w io.Writer) {
			line(w, "enabled; what it missed meanwhile needs fiscalhub webhook replay "+e.ID+" --failed")
		})
	})
}

type webhookDeleteCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
}

// Run deletes an endpoint.
func (c webhookDeleteCmd) Run(t *terminal) error {
	return t.endpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		if err := all.Delete(t.ctx, e.Scope, e.ID); err != nil {
			return err
		}
		v := newEndpointView(e)
		v.Status, v.DisabledReason = "deleted", nil
		return t.answer(v, func(w io.Writer) { line(w, "deleted; nothing more is sent to it") })
	})
}

type webhookTestCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
	privateFlag
}

// testView is what became of a test, in JSON.
type testView struct {
	Delivered  bool    `json:"delivered"`
	HTTPStatus *int    `json:"http_status"` // null without an answer
	Error      *string `json:"error"`
}

// Run posts to an endpoint once, whether or not it is enabled.
func (c webhookTestCmd) Run(t *terminal) error {
	return t.endpoint(c.privateFlag, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		result, err := all.Test(t.ctx, e.Scope, e.ID)
		if err != nil {
			return err
		}
		v := testView{Delivered: result.OK(), Error: optional(result.Error)}
		if result.Status != 0 {
			v.HTTPStatus = &result.Status
		}
		err = t.answer(v, func(w io.Writer) {
			if v.Delivered {
				line(w, fmt.Sprintf("delivered: %d in %s", result.Status, result.Took.Round(time.Millisecond)))
			}
		})
		if err == nil && !v.Delivered {
			err = errors.New("not delivered: " + result.Error)
		}
		return err
	})
}

type webhookDeliveriesCmd struct {
	ID    string `arg:"" help:"Id of the webhook."`
	Limit int    `help:"How many to list." default:"100" placeholder:"N"`
}

// deliveryView is an attempt to tell an endpoint something, in JSON.
type deliveryView struct {
	EventID       string  `json:"event_id"`
	Type          string  `json:"type"`
	Attempt       int64   `json:"attempt"`
	AttemptedAt   string  `json:"attempted_at"`
	TookMS        int64   `json:"took_ms"`
	NextAttemptAt *string `json:"next_attempt_at"`
	HTTPStatus    *int64  `json:"http_status"` // null without an answer
	Error         *string `json:"error"`       // null: it was delivered
	Answer        string  `json:"answer"`      // the beginning of what the endpoint said
}

func newDeliveryView(a store.DeliveryAttempt) deliveryView {
	v := deliveryView{
		EventID: a.EventID, Type: a.Kind, Attempt: a.Number, AttemptedAt: moment(a.At), TookMS: a.Took.Milliseconds(),
		NextAttemptAt: optionalMoment(a.NextAt), Error: optional(a.Error), Answer: string(a.Answer),
	}
	if a.HTTPStatus != 0 {
		v.HTTPStatus = &a.HTTPStatus
	}
	return v
}

// Run lists attempts.
func (c webhookDeliveriesCmd) Run(t *terminal) error {
	if c.Limit < 1 {
		return usageError("--limit: want a positive number")
	}
	return t.endpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		attempts, err := all.Log(t.ctx, e.Scope, e.ID, "", c.Limit)
		if err != nil {
			return err
		}
		views := make([]deliveryView, len(attempts))
		for i, a := range attempts {
			views[i] = newDeliveryView(a)
		}
		return t.answer(views, func(w io.Writer) {
			if len(views) == 0 {
				return
			}
			line(w, "EVENT", "KIND", "ATTEMPT", "TIME", "OUTCOME", "NEXT TRY", "ANSWER")
			for _, v := range views {
				outcome := said(v.Error)
				if outcome == "" {
					outcome = "delivered"
				}
				line(w, v.EventID, v.Type, strconv.FormatInt(v.Attempt, 10), v.AttemptedAt, outcome, said(v.NextAttemptAt), clip(v.Answer))
			}
		})
	})
}

type webhookReplayCmd struct {
	ID     string `arg:"" help:"Id of the webhook."`
	Event  string `help:"One event, by its id." placeholder:"EVENT"`
	Since  string `help:"Everything since a moment." placeholder:"RFC3339"`
	Failed bool   `help:"All that it was not told of: what failed, and what it missed while it was disabled."`
}

// Run has events told once more. A running server sends them.
func (c webhookReplayCmd) Run(t *terminal) error {
	said := 0
	for _, given := range []bool{c.Event != "", c.Since != "", c.Failed} {
		if given {
			said++
		}
	}
	if said != 1 {
		return usageError("want one of --event, --since and --failed")
	}
	what := notify.Replay{NoticeID: c.Event, Failed: c.Failed}
	if c.Since != "" {
		since, err := time.Parse(time.RFC3339, c.Since)
		if err != nil {
			return usageError("--since: want a moment like 2026-11-15T12:00:00Z")
		}
		what.Since = &since
	}
	return t.endpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		plan, err := all.Replay(t.ctx, e.Scope, e.ID, what)
		if errors.Is(err, store.ErrNotFound) && c.Event != "" {
			return fmt.Errorf("the taxpayer of this webhook has no event %s", c.Event)
		}
		if err != nil {
			return err
		}
		text := strconv.FormatInt(plan.Events, 10) + " events are sent once more by a running server"
		if plan.AtLeast {
			text = "at least " + text
		}
		return t.answer(struct {
			Events  int64 `json:"events"`
			AtLeast bool  `json:"at_least,omitempty"`
		}{plan.Events, plan.AtLeast}, func(w io.Writer) { line(w, text) })
	})
}
