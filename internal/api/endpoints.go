package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// endpointResource is a webhook endpoint as integrators see it. Its secret is
// shown when it is made, and never again.
type endpointResource struct {
	ID          string               `json:"id"`
	URL         string               `json:"url"`
	Events      []string             `json:"events"`
	Description *string              `json:"description"`
	Status      store.EndpointStatus `json:"status"`
	Secret      string               `json:"secret,omitempty"`
	CreatedAt   string               `json:"created_at"`
	UpdatedAt   string               `json:"updated_at"`
}

func newEndpointResource(e store.Endpoint, secret webhook.Secret) endpointResource {
	return endpointResource{
		ID: e.ID, URL: e.URL, Events: e.Kinds, Description: orNull(e.Description), Status: e.Status,
		Secret: secret.Reveal(), CreatedAt: fiscal.FormatInstant(e.CreatedAt), UpdatedAt: fiscal.FormatInstant(e.UpdatedAt),
	}
}

func endpointPath(e store.Endpoint) string {
	return "/v1/taxpayers/" + e.TaxpayerID + "/webhook-endpoints/" + e.ID
}

// createEndpoint makes an endpoint. Its answer holds the secret, and is repeated
// for as long as the key is known.
func (a *API) createEndpoint(x *exchange) error {
	if _, err := readQuery(x.r); err != nil {
		return err
	}
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return err
	}
	x.keyDigest = shortDigest(key)
	body, err := readJSON(x.r)
	if err != nil {
		return err
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return err
	}
	intent := notify.Intent{
		Key: key, Fingerprint: digest(document.Canonical()), RawDigest: digest(body), RequestID: x.id,
		Answer: func(e store.Endpoint, secret webhook.Secret) (string, []byte, error) {
			body, err := pipeline.EncodeAnswer(newEndpointResource(e, secret), pipeline.Meta{RequestID: x.id})
			return endpointPath(e), body, err
		},
	}
	ctx, cancel := x.deadline()
	defer cancel()
	made, err := a.makeEndpoint(ctx, x.scope, document, intent)
	if err != nil {
		return err
	}
	x.replayed = made.Replayed
	x.w.Header().Set("Location", made.Answer.Location)
	if made.Replayed {
		x.w.Header().Set("Idempotency-Replayed", "true")
	}
	x.write(made.Answer.HTTPStatus, made.Answer.Body)
	return nil
}

// makeEndpoint judges the request. A key that is known is answered above every
// rule.
func (a *API) makeEndpoint(ctx context.Context, scope store.Scope, document *strictjson.Document, in notify.Intent) (notify.Created, error) {
	wanted, err := decodeEndpoint(document)
	if err != nil {
		known, unknown := a.Endpoints.Recall(ctx, scope, in)
		if errors.Is(unknown, store.ErrNotFound) {
			return notify.Created{}, err
		}
		return known, unknown
	}
	wanted.Scope = scope
	made, err := a.Endpoints.Create(ctx, wanted, in)
	var problems fiscal.Problems
	if errors.As(err, &problems) {
		return notify.Created{}, invalid(problems...)
	}
	return made, err
}

func decodeEndpoint(document *strictjson.Document) (n notify.NewEndpoint, err error) {
	var s shape
	members := s.object(document.Root(), "url", "events", "description")
	for name, v := range members {
		switch name {
		case "url":
			n.URL = s.text(v, name)
		case "events":
			n.Kinds = s.texts(v, name)
		case "description":
			n.Description = s.text(v, name)
		}
	}
	for _, name := range []string{"url", "events"} {
		if _, ok := members[name]; !ok && members != nil {
			s.add(name, fiscal.CodeRequired, "is required")
		}
	}
	return n, s.err()
}

// listEndpoints answers one page, the newest first.
func (a *API) listEndpoints(x *exchange) error {
	query, err := readQuery(x.r, "cursor", "limit")
	if err != nil {
		return err
	}
	list := cursor.NewList("webhook_endpoints", string(x.scope.Environment), x.scope.TaxpayerID)
	before, page, err := a.pageOf(query, list)
	if err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	endpoints, err := a.Store.Endpoints(ctx, x.scope, before, page+1)
	if err != nil {
		return err
	}
	m := pageMeta{RequestID: x.id}
	if len(endpoints) > page {
		endpoints = endpoints[:page]
		if m, err = a.nextPage(x, endpoints[page-1].ID, list); err != nil {
			return err
		}
	}
	data := make([]endpointResource, len(endpoints))
	for i, e := range endpoints {
		data[i] = newEndpointResource(e, webhook.Secret{})
	}
	return x.respondWith(data, m)
}

// endpoint finds what the path names. It comes before what is in the body: of
// what is another's nothing is told.
func (a *API) endpoint(ctx context.Context, x *exchange) (store.Endpoint, error) {
	id, ok := parseUUID(x.params["endpoint_id"])
	if !ok {
		return store.Endpoint{}, notFound()
	}
	return a.Store.Endpoint(ctx, x.scope, id)
}

// readEndpoint answers one endpoint.
func (a *API) readEndpoint(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.endpoint(ctx, x)
	if err != nil {
		return err
	}
	return x.respond(newEndpointResource(e, webhook.Secret{}))
}

// deleteEndpoint ends an endpoint.
func (a *API) deleteEndpoint(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.endpoint(ctx, x)
	if err != nil {
		return err
	}
	if err := a.Endpoints.Delete(ctx, x.scope, e.ID); err != nil {
		return err
	}
	x.writeNothing(http.StatusNoContent)
	return nil
}

// rotateEndpoint answers an endpoint with a new secret.
func (a *API) rotateEndpoint(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.commanded(ctx, x)
	if err != nil {
		return err
	}
	e, secret, err := a.Endpoints.Rotate(ctx, x.scope, e.ID)
	if err != nil {
		return err
	}
	return x.respond(newEndpointResource(e, secret))
}

// enableEndpoint has an endpoint sent to again.
func (a *API) enableEndpoint(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.commanded(ctx, x)
	if err != nil {
		return err
	}
	if e, err = a.Endpoints.Enable(ctx, x.scope, e.ID); err != nil {
		return err
	}
	return x.respond(newEndpointResource(e, webhook.Secret{}))
}

// testResource is how a test of an endpoint ended.
type testResource struct {
	Delivered  bool    `json:"delivered"`
	HTTPStatus *int64  `json:"http_status"`
	Error      *string `json:"error"`
}

// testEndpoint posts a test event. It is another's server that takes the time,
// so that the places are for others meanwhile.
func (a *API) testEndpoint(x *exchange) error {
	ctx, cancel := x.deadline()
	defer cancel()
	e, err := a.commanded(ctx, x)
	if err != nil {
		return err
	}
	var result webhook.Result
	waited := a.wait(x, handlerTime, func(ctx context.Context) {
		result, err = a.Endpoints.Test(ctx, x.scope, e.ID)
	})
	if !waited {
		return rateLimited(1, "too many requests of this credential are waiting")
	}
	if err != nil {
		return err
	}
	return x.respond(testResource{Delivered: result.OK(), HTTPStatus: orNone64(int64(result.Status)), Error: orNull(result.Error)})
}

func orNone64(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// commanded finds the endpoint of a request that says all with its path: a body
// is none or an empty object.
func (a *API) commanded(ctx context.Context, x *exchange) (store.Endpoint, error) {
	e, err := a.endpoint(ctx, x)
	if err != nil || x.r.ContentLength == 0 {
		return e, err
	}
	body, err := readJSON(x.r)
	if err != nil || len(body) == 0 {
		return e, err
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return e, err
	}
	var s shape
	s.object(document.Root())
	return e, s.err()
}
