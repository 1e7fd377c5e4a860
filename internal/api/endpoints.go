package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// createEndpoint creates an endpoint. The answer contains its secret. A request
// with the same key and body gets the same answer again, without the secret when
// that is not valid any more.
func (a *API) createEndpoint(x *exchange) error {
	key, err := creationKey(x)
	if err != nil {
		return err
	}
	raw, document, err := a.readJSON(x)
	if err != nil {
		return err
	}
	intent := notify.Intent{
		Key: key, Fingerprint: digest(document.Canonical()), RawDigest: digest(raw), RequestID: x.id,
	}
	ctx, cancel := x.deadline()
	defer cancel()
	created, err := a.storeEndpoint(ctx, x.scope, document, intent)
	if err != nil {
		return err
	}
	x.replayed = created.Replayed
	x.w.Header().Set("Location", a.basePath+created.Answer.Location)
	if created.Replayed {
		x.w.Header().Set("Idempotency-Replayed", "true")
	}
	return x.write(created.Answer.HTTPStatus, created.Answer.Body)
}

// storeEndpoint validates the request and stores the endpoint. A known key
// returns its stored answer, even when the request breaks a rule by now.
func (a *API) storeEndpoint(ctx context.Context, scope store.Scope, document *strictjson.Document, in notify.Intent) (notify.Created, error) {
	endpoint, err := a.decodeEndpoint(document)
	if err != nil {
		known, recallErr := a.o.Endpoints.StoredAnswer(ctx, scope, in)
		if errors.Is(recallErr, store.ErrNotFound) {
			return notify.Created{}, err
		}
		return known, recallErr
	}
	endpoint.Scope = scope
	created, err := a.o.Endpoints.Create(ctx, endpoint, in)
	var problems fiscal.Problems
	if errors.As(err, &problems) {
		return notify.Created{}, invalid(problems...)
	}
	return created, err
}

// decodeEndpoint returns the endpoint that the request describes. When the request has the
// wrong form, the error also has the problems of the members whose form is right.
func (a *API) decodeEndpoint(document *strictjson.Document) (n notify.EndpointSpec, err error) {
	var d bodyDecoder
	members := d.document(document, "url", "events", "description")
	for name, v := range members {
		switch name {
		case "url":
			n.URL = d.text(v, name)
		case "events":
			n.Kinds = d.texts(v, name)
		case "description":
			n.Description = d.text(v, name)
		}
	}
	for _, name := range []string{"url", "events"} {
		if _, ok := members[name]; !ok && members != nil {
			d.add(name, fiscal.CodeRequired, lang.Messagef("is required", "es obligatorio"))
		}
	}
	if formed := len(d.problems); formed > 0 && members != nil {
		wrong := func(p fiscal.Problem) bool {
			return slices.ContainsFunc(d.problems[:formed], func(f fiscal.Problem) bool { return topMember(f.Field) == topMember(p.Field) })
		}
		for _, p := range slices.DeleteFunc(a.o.Endpoints.Check(n), wrong) {
			d.add(p.Field, p.Code, p.Message)
		}
	}
	return n, d.err()
}

// listEndpoints answers one page of endpoints, newest first.
func (a *API) listEndpoints(x *exchange) error {
	query, err := readQuery(x.r, "cursor", "limit")
	if err != nil {
		return err
	}
	list := cursor.NewList("webhook_endpoints", string(x.scope.Environment), x.scope.TaxpayerID)
	page, err := a.unfilteredPage(query, list)
	if err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	endpoints, err := a.o.Store.Endpoints(ctx, x.scope, page.before, page.limit+1)
	if err != nil {
		return err
	}
	return respondPage(x, page, endpoints, func(e store.Endpoint) (string, notify.EndpointResource) {
		return e.ID, notify.NewEndpointResource(e, webhook.Secret{})
	})
}

// endpointHandler handles a request for an endpoint that exists.
type endpointHandler func(ctx context.Context, x *exchange, e store.Endpoint) error

// withEndpoint returns a handler that finds the endpoint of the path and calls
// handle. It does so before the body is read, so that the answer for an unknown
// endpoint is always 404.
func (a *API) withEndpoint(handle endpointHandler) func(*exchange) error {
	return func(x *exchange) error {
		id, ok := parseUUID(x.params["endpoint_id"])
		if !ok {
			return notFound()
		}
		ctx, cancel := x.deadline()
		defer cancel()
		e, err := a.o.Store.Endpoint(ctx, x.scope, id)
		if err != nil {
			return err
		}
		if err := x.checkIfMatch(); err != nil {
			return err
		}
		return handle(ctx, x, e)
	}
}

// withCommand is withEndpoint for commands. A command takes no arguments: its
// body must be absent or an empty object.
func (a *API) withCommand(handle endpointHandler) func(*exchange) error {
	return a.withEndpoint(func(ctx context.Context, x *exchange, e store.Endpoint) error {
		if err := a.checkNoArguments(x); err != nil {
			return err
		}
		return handle(ctx, x, e)
	})
}

func (a *API) checkNoArguments(x *exchange) error {
	if x.r.ContentLength == 0 {
		return nil
	}
	body, err := a.readJSONBytes(x)
	if err != nil || len(body) == 0 {
		return err
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return err
	}
	var d bodyDecoder
	d.document(document)
	return d.err()
}

// readEndpoint answers one endpoint.
func (a *API) readEndpoint(_ context.Context, x *exchange, e store.Endpoint) error {
	return x.respond(notify.NewEndpointResource(e, webhook.Secret{}))
}

// deleteEndpoint deletes an endpoint.
func (a *API) deleteEndpoint(ctx context.Context, x *exchange, e store.Endpoint) error {
	if err := a.o.Endpoints.Delete(ctx, x.scope, e.ID); err != nil {
		return err
	}
	x.writeEmpty(http.StatusNoContent)
	return nil
}

// rotateEndpoint gives an endpoint a new secret and answers it.
func (a *API) rotateEndpoint(ctx context.Context, x *exchange, e store.Endpoint) error {
	e, secret, err := a.o.Endpoints.Rotate(ctx, x.scope, e.ID, notify.Overlap)
	if err != nil {
		return err
	}
	return x.respond(notify.NewEndpointResource(e, secret))
}

// enableEndpoint makes the sender deliver to a disabled endpoint again.
func (a *API) enableEndpoint(ctx context.Context, x *exchange, e store.Endpoint) error {
	e, err := a.o.Endpoints.Enable(ctx, x.scope, e.ID)
	if err != nil {
		return err
	}
	return x.respond(notify.NewEndpointResource(e, webhook.Secret{}))
}

// testResource is the result of a test of an endpoint.
type testResource struct {
	Delivered  bool    `json:"delivered"`
	HTTPStatus *int64  `json:"http_status"`
	Error      *string `json:"error"`
}

// testEndpoint posts a test event and answers the result. The request gives its
// slots back while it waits for the server of the endpoint.
func (a *API) testEndpoint(_ context.Context, x *exchange, e store.Endpoint) error {
	var (
		result webhook.Result
		err    error
	)
	refused := a.wait(x, handlerTime, func(ctx context.Context) {
		result, err = a.o.Endpoints.Test(ctx, x.scope, e.ID)
	})
	if err := cmp.Or(refused, err); err != nil {
		return err
	}
	return x.respond(testResource{Delivered: result.OK(), HTTPStatus: zeroAsNull(int64(result.Status)), Error: envelope.NullIfEmpty(result.Error)})
}

// zeroAsNull returns nil for zero, which JSON shows as null.
func zeroAsNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

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
	attempts, err := a.o.Endpoints.Log(ctx, x.scope, e.ID, page.before, page.limit+1)
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
	plan, err := a.o.Endpoints.Replay(ctx, x.scope, e.ID, replay)
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
