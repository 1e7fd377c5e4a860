package main

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type webhookTestCmd struct {
	ID string `arg:"" help:"Id of the webhook."`
	privateFlag
}

// testView is the result of a test event in JSON.
type testView struct {
	Delivered  bool    `json:"delivered"`
	HTTPStatus *int    `json:"http_status"` // null without an answer
	Error      *string `json:"error"`
}

// Run sends one test event, also to a disabled endpoint. It fails when the
// endpoint does not accept the event.
func (c webhookTestCmd) Run(t *terminal) error {
	return t.withEndpoint(c.privateFlag, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
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
				say(w, lang.Messagef("delivered: %d in %s", "entregado: %d en %s", result.Status, result.Took.Round(time.Millisecond)))
			}
		})
		if err == nil && !v.Delivered {
			err = lang.Errorf("not delivered: %s: %s", "no entregado: %s: %s", result.Error, adviceOfDelivery(result.Error))
		}
		return err
	})
}

// adviceOfDelivery returns what to do about the class of a failed delivery.
func adviceOfDelivery(class string) lang.Message {
	switch class {
	case netguard.ClassRefused:
		return lang.Messagef("the address is not public, or does not use https at port 443; outside of production --webhook-allow-private allows it",
			"la dirección no es pública, o no usa https en el puerto 443; fuera de production, --webhook-allow-private la permite")
	case netguard.ClassDNS:
		return lang.Messagef("the host has no address: check the name in the URL", "el servidor no tiene dirección: revise el nombre en la URL")
	}
	return lang.Messagef("check that the receiver runs at the URL and answers with a 2xx status", "revise que el receptor esté en marcha en la URL y responda con un estado 2xx")
}

type webhookDeliveriesCmd struct {
	ID    string `arg:"" help:"Id of the webhook."`
	Limit int    `help:"How many attempts to list (default 100)." default:"100" placeholder:"N"`
}

// deliveryView is an attempt to deliver an event, in JSON.
type deliveryView struct {
	RequestID     string  `json:"request_id"` // that the endpoint has received
	EventID       string  `json:"event_id"`
	Type          string  `json:"type"`
	Attempt       int64   `json:"attempt"`
	AttemptedAt   string  `json:"attempted_at"`
	TookMS        int64   `json:"took_ms"`
	NextAttemptAt *string `json:"next_attempt_at"`
	HTTPStatus    *int64  `json:"http_status"` // null without an answer
	Error         *string `json:"error"`       // null when the event was delivered
	Answer        string  `json:"answer"`      // the beginning of the endpoint's answer
}

func newDeliveryView(a store.DeliveryAttempt) deliveryView {
	v := deliveryView{
		RequestID: notify.AttemptRequestID(a.ID), EventID: a.EventID, Type: a.Kind, Attempt: a.Number, AttemptedAt: formatTime(a.At), TookMS: a.Took.Milliseconds(),
		NextAttemptAt: optionalTime(a.NextAt), Error: optional(a.Error), Answer: string(a.Answer),
	}
	if a.HTTPStatus != 0 {
		v.HTTPStatus = &a.HTTPStatus
	}
	return v
}

// Run lists delivery attempts.
func (c webhookDeliveriesCmd) Run(t *terminal) error {
	if c.Limit < 1 {
		return wrongUsage("--limit must be 1 or more", "--limit debe ser 1 o más")
	}
	return t.withEndpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		attempts, err := all.Log(t.ctx, e.Scope, e.ID, "", c.Limit)
		if err != nil {
			return err
		}
		views := mapEach(attempts, newDeliveryView)
		b := newTable("EVENT", "KIND", "ATTEMPT", "TIME", "OUTCOME", "NEXT TRY", "ANSWER")
		for _, v := range views {
			outcome := textOf(v.Error)
			if outcome == "" {
				outcome = lang.Messagef("delivered", "entregado").In(t.language)
			}
			b.add(v.EventID, v.Type, strconv.FormatInt(v.Attempt, 10), v.AttemptedAt, outcome, textOf(v.NextAttemptAt), v.Answer)
		}
		return t.list(views, b)
	})
}

type webhookReplayCmd struct {
	ID     string `arg:"" help:"Id of the webhook."`
	Event  string `help:"Send one event, by its id." placeholder:"EVENT"`
	Since  string `help:"Send every event since an instant." placeholder:"RFC3339"`
	Failed bool   `help:"Send every event that failed or that the endpoint missed while it was disabled."`
}

// Run makes events due for another delivery. A running server sends them. When the command
// is interrupted, a running server also makes the rest of them due.
func (c webhookReplayCmd) Run(t *terminal) error {
	replay, err := c.replay()
	if err != nil {
		return err
	}
	return t.withEndpoint(privateFlag{}, c.ID, func(all *notify.Endpoints, e store.Endpoint) error {
		plan, err := all.Replay(t.ctx, e.Scope, e.ID, replay)
		if errors.Is(err, store.ErrNotFound) && c.Event != "" {
			return lang.Errorf("the taxpayer of this webhook has no event %s", "el contribuyente de este webhook no tiene el evento %s", c.Event)
		}
		if err != nil {
			return err
		}
		if err := t.runReplay(all, e, plan); err != nil {
			return err
		}
		count := lang.Literal(strconv.FormatInt(plan.Events, 10))
		if plan.AtLeast {
			count = lang.Messagef("at least %s", "al menos %s", count)
		}
		return t.answer(struct {
			Events  int64 `json:"events"`
			AtLeast bool  `json:"at_least,omitempty"`
		}{plan.Events, plan.AtLeast}, func(w io.Writer) {
			say(w, lang.Messagef("A running server sends %s events again.", "Un servidor en marcha envía otra vez %s eventos.", count))
		})
	})
}

// runReplay makes the events of a replay due and shows the progress.
func (t *terminal) runReplay(all *notify.Endpoints, e store.Endpoint, plan store.ReplayPlan) error {
	progress := t.startProgress(lang.Messagef("webhook replay", "reenvío de webhooks"), lang.Messagef("events", "eventos"))
	defer progress.end(t)
	err := all.RunReplay(t.ctx, e.Scope, e.ID, func(due int64) {
		if due < plan.Events {
			progress.report(due, plan.Events)
		} else if plan.Events > 0 {
			progress.report(due, due) // there may be more than were counted
		}
	})
	return t.interrupted(err, lang.Messagef("%d events are due; a running server continues with the others by itself",
		"%d eventos están pendientes; un servidor en marcha continúa solo con los demás", progress.done))
}

// replay reads the flags, exactly one of which must be set.
func (c webhookReplayCmd) replay() (notify.Replay, error) {
	count := 0
	for _, given := range []bool{c.Event != "", c.Since != "", c.Failed} {
		if given {
			count++
		}
	}
	if count != 1 {
		return notify.Replay{}, wrongUsage("give exactly one of --event, --since and --failed",
			"indique exactamente uno de --event, --since y --failed")
	}
	replay := notify.Replay{EventID: c.Event, Failed: c.Failed}
	if c.Since == "" {
		return replay, nil
	}
	since, err := time.Parse(time.RFC3339, c.Since)
	if err != nil {
		return replay, wrongUsage("--since must be an instant like 2026-11-15T12:00:00Z", "--since debe ser un instante como 2026-11-15T12:00:00Z")
	}
	replay.Since = &since
	return replay, nil
}
