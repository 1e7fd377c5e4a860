package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

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
