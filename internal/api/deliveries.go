package api

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// deliveryResource is one attempt to deliver an event to an endpoint.
type deliveryResource struct {
	EventID       string  `json:"event_id"`
	Type          string  `json:"type"`
	Attempt       int64   `json:"attempt"`
	AttemptedAt   string  `json:"attempted_at"`
	NextAttemptAt *string `json:"next_attempt_at"`
	HTTPStatus    *int64  `json:"http_status"`
	Error         *string `json:"error"`
}

func newDeliveryResource(d store.DeliveryAttempt) deliveryResource {
	r := deliveryResource{
		EventID: d.EventID, Type: d.Kind, Attempt: d.Number, AttemptedAt: fiscal.FormatInstant(d.At),
		HTTPStatus: zeroAsNull(d.HTTPStatus), Error: envelope.NullIfEmpty(d.Error),
	}
	if !d.NextAt.IsZero() {
		next := fiscal.FormatInstant(d.NextAt)
		r.NextAttemptAt = &next
	}
	return r
}

// listDeliveries answers one page of the delivery log of an endpoint, newest
// first.
func (a *API) listDeliveries(ctx context.Context, x *exchange, e store.Endpoint) error {
	query, err := readQuery(x.r, "cursor", "limit")
	if err != nil {
		return err
	}
	list := cursor.NewList("deliveries", string(x.scope.Environment), x.scope.TaxpayerID, e.ID)
	page, err := a.unfilteredPage(query, list)
	if err != nil {
		return err
	}
	attempts, err := a.endpoints.Log(ctx, x.scope, e.ID, page.before, page.limit+1)
	if err != nil {
		return err
	}
	return respondPage(x, page, attempts, func(d store.DeliveryAttempt) (string, deliveryResource) {
		return d.ID, newDeliveryResource(d)
	})
}

// replayResource is how many events will be sent to the endpoint again.
type replayResource struct {
	Events  int64 `json:"events"`
	AtLeast bool  `json:"at_least,omitempty"` // more events than were counted
}

// replayEvents sends events to an endpoint again.
func (a *API) replayEvents(ctx context.Context, x *exchange, e store.Endpoint) error {
	_, document, err := a.readJSON(x)
	if err != nil {
		return err
	}
	replay, err := decodeReplay(document)
	if err != nil {
		return err
	}
	plan, err := a.endpoints.Replay(ctx, x.scope, e.ID, replay)
	if err != nil {
		return err
	}
	return x.respondAs(http.StatusAccepted, replayResource{plan.Events, plan.AtLeast}, envelope.Meta{RequestID: x.id})
}

var eventIDForm = regexp.MustCompile(`^evt_[0-9a-f]{32}$`)

// decodeReplay reads which events to send again. The body must have exactly one
// of its three members.
func decodeReplay(document *strictjson.Document) (replay notify.Replay, _ error) {
	var d bodyDecoder
	members := d.document(document, "event_id", "since", "failed")
	for name, v := range members {
		switch name {
		case "event_id":
			if replay.EventID = d.text(v, name); replay.EventID != "" && !eventIDForm.MatchString(replay.EventID) {
				d.add(name, fiscal.CodeInvalidFormat, lang.Messagef(
					"must be the id of an event: evt_ and 32 hexadecimal digits",
					"debe ser el id de un evento: evt_ y 32 dígitos hexadecimales"))
			}
		case "since":
			if text := d.text(v, name); text != "" {
				since, err := time.Parse(time.RFC3339, text)
				if replay.Since = &since; err != nil {
					d.add(name, fiscal.CodeInvalidDate, lang.Messagef(
						"must be a date and time such as 2026-03-05T14:02:11Z",
						"debe ser una fecha y hora como 2026-03-05T14:02:11Z"))
				}
			}
		case "failed":
			if replay.Failed = v.Text() == "true" && v.Kind() == strictjson.Bool; !replay.Failed {
				d.add(name, fiscal.CodeInvalidEnum, lang.Messagef("must be true", "debe ser true"))
			}
		}
	}
	if members != nil && len(members) != 1 {
		code := fiscal.CodeRequired
		if len(members) > 1 {
			code = fiscal.CodeDuplicated
		}
		d.add("", code, lang.Messagef(
			"must have exactly one of event_id, since and failed",
			"debe tener exactamente uno de event_id, since y failed"))
	}
	return replay, d.err()
}
