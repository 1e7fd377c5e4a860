package api

import (
	"net/http"
	"regexp"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// deliveryResource is one attempt to tell an endpoint something.
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
		HTTPStatus: orNone64(d.HTTPStatus), Error: orNull(d.Error),
	}
	if !d.NextAt.IsZero() {
		next := fiscal.FormatInstant(d.NextAt)
		r.NextAttemptAt = &next
	}
	return r
}

// listDeliveries answers one page of an endpoint's log, the newest first.
func (a *API) listDeliveries(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.endpoint(ctx, x)
	if err != nil {
		return err
	}
	query, err := readQuery(x.r, "cursor", "limit")
	if err != nil {
		return err
	}
	list := cursor.NewList("deliveries", string(x.scope.Environment), x.scope.TaxpayerID, e.ID)
	before, page, err := a.pageOf(query, list)
	if err != nil {
		return err
	}
	log, err := a.Endpoints.Log(ctx, x.scope, e.ID, before, page+1)
	if err != nil {
		return err
	}
	m := pageMeta{RequestID: x.id}
	if len(log) > page {
		log = log[:page]
		if m, err = a.nextPage(x, log[page-1].ID, list); err != nil {
			return err
		}
	}
	data := make([]deliveryResource, len(log))
	for i, d := range log {
		data[i] = newDeliveryResource(d)
	}
	return x.respondWith(data, m)
}

// replayResource tells of how many events an endpoint will be told once more.
type replayResource struct {
	Events  int64 `json:"events"`
	AtLeast bool  `json:"at_least,omitempty"` // more events than were counted
}

// replayEvents has an endpoint told of events once more.
func (a *API) replayEvents(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.endpoint(ctx, x)
	if err != nil {
		return err
	}
	body, err := readJSON(x.r)
	if err != nil {
		return err
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return err
	}
	what, err := decodeReplay(document)
	if err != nil {
		return err
	}
	plan, err := a.Endpoints.Replay(ctx, x.scope, e.ID, what)
	if err != nil {
		return err
	}
	return x.respondAs(http.StatusAccepted, replayResource{plan.Events, plan.AtLeast}, pipeline.Meta{RequestID: x.id})
}

var eventIDForm = regexp.MustCompile(`^evt_[0-9a-f]{32}$`)

// decodeReplay reads which events: one of three members says.
func decodeReplay(document *strictjson.Document) (what notify.Replay, _ error) {
	var s shape
	members := s.object(document.Root(), "event_id", "since", "failed")
	for name, v := range members {
		switch name {
		case "event_id":
			if what.NoticeID = s.text(v, name); what.NoticeID != "" && !eventIDForm.MatchString(what.NoticeID) {
				s.add(name, fiscal.CodeInvalidFormat, "want the id of an event")
			}
		case "since":
			if text := s.text(v, name); text != "" {
				since, err := time.Parse(time.RFC3339, text)
				if what.Since = &since; err != nil {
					s.add(name, fiscal.CodeInvalidDate, "want an instant such as 2026-03-05T14:02:11Z")
				}
			}
		case "failed":
			if what.Failed = v.Text() == "true" && v.Kind() == strictjson.Bool; !what.Failed {
				s.add(name, fiscal.CodeInvalidEnum, "want true")
			}
		}
	}
	if members != nil && len(members) != 1 {
		code := fiscal.CodeRequired
		if len(members) > 1 {
			code = fiscal.CodeDuplicated
		}
		s.add("", code, "want one of event_id, since and failed")
	}
	return what, s.err()
}
