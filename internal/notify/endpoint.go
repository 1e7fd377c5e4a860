package notify

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// ErrSandbox means that the sandbox neither sends events nor accepts messages.
var ErrSandbox = lang.Errorf("the sandbox sends no events and accepts no messages", "el sandbox no envía eventos ni acepta mensajes")

// Poster makes one attempt to post an event.
type Poster interface {
	Post(ctx context.Context, m webhook.Message) webhook.Result
}

// EndpointsOptions configure Endpoints. Store, Secrets, Poster and Now are required.
type EndpointsOptions struct {
	Store   *store.Store
	Secrets *access.Secrets
	Poster  Poster // posts the event of Test
	Guard   netguard.Guard
	Now     func() time.Time
	// WakeSender is called when there may be deliveries to send. It may be nil.
	WakeSender func()
}

// Endpoints manages webhook endpoints.
type Endpoints struct {
	o EndpointsOptions
}

// NewEndpoints returns the endpoints of a store. It fails when a required option is
// missing.
func NewEndpoints(o EndpointsOptions) (*Endpoints, error) {
	if o.Store == nil || o.Secrets == nil || o.Poster == nil || o.Now == nil {
		return nil, errors.New("notify: endpoints need Store, Secrets, Poster and Now")
	}
	if o.WakeSender == nil {
		o.WakeSender = func() {}
	}
	return &Endpoints{o: o}, nil
}

// Get returns an endpoint of any taxpayer. It fails with store.ErrNotFound.
func (s *Endpoints) Get(ctx context.Context, id string) (store.Endpoint, error) {
	return s.o.Store.AnyEndpoint(ctx, id)
}

// Rotate gives an endpoint a new secret and returns it. The sender signs with both
// secrets for the overlap. Rotate fails with store.ErrNotFound.
func (s *Endpoints) Rotate(ctx context.Context, scope store.Scope, id string, overlap time.Duration) (store.Endpoint, webhook.Secret, error) {
	return s.RotateOnce(ctx, store.Form{}, scope, id, overlap)
}

// RotateOnce is Rotate for a form of a person. It also fails with a *store.FormUsedError
// when the form was sent before: a second rotation would end the secret that the receiver
// still uses.
func (s *Endpoints) RotateOnce(ctx context.Context, form store.Form, scope store.Scope, id string, overlap time.Duration) (e store.Endpoint, secret webhook.Secret, err error) {
	if err := checkOverlap(overlap); err != nil {
		return store.Endpoint{}, webhook.Secret{}, err
	}
	now := s.o.Now()
	secret = webhook.NewSecret()
	err = s.o.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		before, err := tx.Endpoint(ctx, scope, id)
		if err != nil {
			return err
		}
		if err := tx.UseForm(ctx, scope, form, "rotate_webhook", id, now); err != nil {
			return err
		}
		next, err := seal(access.EndpointBinding(scope, id, before.Secret.Version+1), []byte(secret.Reveal()))
		if err != nil {
			return err
		}
		if err := tx.RotateEndpoint(ctx, before, next, now.Add(overlap), now); err != nil {
			return err
		}
		e, err = tx.Endpoint(ctx, scope, id)
		return err
	})
	if err != nil {
		return store.Endpoint{}, webhook.Secret{}, err
	}
	return e, secret, nil
}

// Enable enables an endpoint. The sender continues its pending deliveries. Events from
// the time when the endpoint was disabled need a Replay. Enable fails with
// store.ErrNotFound.
func (s *Endpoints) Enable(ctx context.Context, scope store.Scope, id string) (e store.Endpoint, err error) {
	err = s.o.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.EnableEndpoint(ctx, scope, id, s.o.Now()); err != nil {
			return err
		}
		e, err = tx.Endpoint(ctx, scope, id)
		return err
	})
	s.o.WakeSender()
	return e, err
}

// Delete deletes an endpoint and its deliveries. It fails with store.ErrNotFound.
func (s *Endpoints) Delete(ctx context.Context, scope store.Scope, id string) error {
	return s.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.DeleteEndpoint(ctx, scope, id, s.o.Now()) })
}

// Log returns the delivery attempts of an endpoint that are older than the attempt with
// the id before, the newest first. Without before it starts with the newest attempt. It
// fails with store.ErrNotFound when the endpoint does not exist.
func (s *Endpoints) Log(ctx context.Context, scope store.Scope, id, before string, limit int) ([]store.DeliveryAttempt, error) {
	if _, err := s.o.Store.Endpoint(ctx, scope, id); err != nil {
		return nil, err
	}
	return s.o.Store.DeliveryLog(ctx, scope, id, before, limit)
}

// Test posts a test event once, even when the endpoint is disabled. The attempt appears
// in the log of the endpoint and does not count as a failure. Test fails with
// store.ErrNotFound when the endpoint does not exist.
func (s *Endpoints) Test(ctx context.Context, scope store.Scope, id string) (webhook.Result, error) {
	e, err := s.o.Store.Endpoint(ctx, scope, id)
	if err != nil {
		return webhook.Result{}, err
	}
	now := s.o.Now()
	n, err := newEndpointEvent(event.WebhookTest, e, "", now)
	if err != nil {
		return webhook.Result{}, err
	}
	secrets, err := endpointSecrets(s.o.Secrets, e, now)
	if err != nil {
		return webhook.Result{}, err
	}
	attempt := store.NewID()
	result := s.o.Poster.Post(ctx, webhook.Message{URL: e.URL, ID: n.ID, Body: n.Body, Secrets: secrets, RequestID: AttemptRequestID(attempt)})
	if result.Error == webhook.ClassStopped {
		return webhook.Result{}, context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx) // the event was sent: log the attempt in any case
	return result, s.o.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.AddDeliveryAttempt(ctx, newAttempt(attempt, e.Scope, e.ID, n, 1, now, result))
	})
}

// AttemptRequestID returns the request id that an endpoint receives with an attempt: the
// id of the attempt in the form of all request ids.
func AttemptRequestID(attemptID string) string {
	return "req_" + strings.ReplaceAll(attemptID, "-", "")
}

// newAttempt returns the log entry of an attempt.
func newAttempt(id string, scope store.Scope, endpointID string, n store.Event, number int64, at time.Time, r webhook.Result) store.DeliveryAttempt {
	return store.DeliveryAttempt{
		Scope: scope, ID: id, EndpointID: endpointID, EventID: n.ID, Kind: n.Kind, Number: number, At: at, Took: r.Took,
		HTTPStatus: int64(r.Status), Error: r.Error, Answer: r.Answer,
	}
}
