package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// CreateEndpoint names the operation in the scope of an idempotency key.
const CreateEndpoint = "create_webhook_endpoint"

// Overlap is how long the secret before the last rotation stays good.
const Overlap = 24 * time.Hour

var (
	// ErrSandbox says that nothing is sent from the sandbox, nor told to it.
	ErrSandbox = errors.New("the sandbox emits no events and takes none")
	// ErrMismatch says that the key was used with another request.
	ErrMismatch = errors.New("idempotency key used with another request")
)

// Poster makes one attempt to post an event.
type Poster interface {
	Post(ctx context.Context, m webhook.Message) webhook.Result
}

// Endpoints looks after the life of endpoints.
type Endpoints struct {
	Store   *store.Store
	Secrets access.Secrets
	Poster  Poster // for Test
	Guard   netguard.Guard
	Now     func() time.Time
	// WakeSender tells the sender that there may be something to send; nil: nobody.
	WakeSender func()
}

// NewEndpoint is an endpoint to be made.
type NewEndpoint struct {
	Scope       store.Scope
	URL         string
	Kinds       []string
	Description string
}

// Intent is under which key an endpoint is made, by which request, and how the
// integrator is told. The zero Intent is none, as the operator has.
type Intent struct {
	Key         string
	Fingerprint []byte
	RawDigest   []byte
	RequestID   string
	// Answer renders what the integrator is told. It is kept, sealed, for
	// repetitions, and may be called twice.
	Answer func(e store.Endpoint, secret webhook.Secret) (location string, body []byte, err error)
}

// Created is a new endpoint, or the answer of an earlier equal request: then
// there is nothing but the answer.
type Created struct {
	Endpoint store.Endpoint
	Secret   webhook.Secret
	Answer   store.Answer
	Replayed bool
}

// errKnown says that the key is known.
var errKnown = errors.New("idempotency key known")

// Create makes an endpoint with a secret of its own, which is shown once. A known
// key is answered whatever the rules say by now. The error is fiscal.Problems,
// store.ErrTooManyEndpoints, store.ErrNotFound without such a taxpayer,
// ErrMismatch or ErrSandbox.
func (s Endpoints) Create(ctx context.Context, n NewEndpoint, in Intent) (Created, error) {
	if n.Scope.Environment == fiscal.Sandbox {
		return Created{}, ErrSandbox
	}
	made, err := s.create(ctx, n, in)
	if err == nil || in.Key == "" {
		return made, err
	}
	known, errKnown := s.Recall(ctx, n.Scope, in)
	if errors.Is(errKnown, store.ErrNotFound) || errors.Is(errKnown, store.ErrUnavailable) {
		return Created{}, err
	}
	return known, errKnown
}

func (s Endpoints) create(ctx context.Context, n NewEndpoint, in Intent) (made Created, err error) {
	if err := n.check(s.Guard); err != nil {
		return Created{}, err
	}
	now := s.Now().UTC().Truncate(time.Millisecond)
	secret := webhook.NewSecret()
	err = s.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		e := store.Endpoint{
			Scope: n.Scope, ID: store.NewID(), URL: n.URL, Kinds: n.Kinds, Description: n.Description,
			Status: store.EndpointEnabled, Concurrency: store.MaxConcurrency, CreatedAt: now, UpdatedAt: now,
		}
		if e.Secret, err = seal(access.EndpointSecret(e.Scope, e.ID, 1), []byte(secret.Reveal())); err != nil {
			return err
		}
		made = Created{Endpoint: e, Secret: secret}
		if in.Key != "" {
			if made.Answer, err = remember(ctx, tx, seal, made, in); err != nil {
				return err
			}
		}
		return tx.CreateEndpoint(ctx, e)
	})
	if err != nil {
		return Created{}, err
	}
	return made, nil
}

// remember stores the answer of a creation. The secret is in it, so its body is
// sealed.
func remember(ctx context.Context, tx *store.Tx, seal access.Sealer, made Created, in Intent) (store.Answer, error) {
	e := made.Endpoint
	location, body, err := in.Answer(e, made.Secret)
	if err != nil {
		return store.Answer{}, fmt.Errorf("notify: render answer: %w", err)
	}
	answer := store.Answer{
		Scope: e.Scope, Operation: CreateEndpoint, Key: in.Key, Fingerprint: in.Fingerprint, RawDigest: in.RawDigest,
		ObjectID: e.ID, HTTPStatus: http.StatusCreated, Location: location, RequestID: in.RequestID, CreatedAt: e.CreatedAt, Body: body,
	}
	sealed, err := seal(access.AnswerSecret(e.Scope, CreateEndpoint, in.Key), body)
	if err != nil {
		return store.Answer{}, err
	}
	fresh, err := tx.RememberAnswer(ctx, answer, sealed)
	if err == nil && !fresh {
		err = errKnown
	}
	return answer, err
}

// Recall looks for the answer of an earlier equal request. The error is
// store.ErrNotFound when the key is new, and ErrMismatch when it came with another request.
func (s Endpoints) Recall(ctx context.Context, scope store.Scope, in Intent) (Created, error) {
	answer, err := s.Store.Answer(ctx, scope, CreateEndpoint, in.Key)
	if err != nil {
		return Created{}, err
	}
	if !bytes.Equal(answer.Fingerprint, in.Fingerprint) {
		return Created{}, ErrMismatch
	}
	sealed, err := s.Store.SealedAnswer(ctx, scope, CreateEndpoint, in.Key)
	if err != nil {
		return Created{}, err
	}
	answer.Body, err = s.Secrets.Open(access.AnswerSecret(scope, CreateEndpoint, in.Key), sealed.Secret.Sealed)
	return Created{Answer: answer, Replayed: true}, err
}

// Rotate gives an endpoint a new secret. The old one signs as well for a day.
func (s Endpoints) Rotate(ctx context.Context, scope store.Scope, id string) (e store.Endpoint, secret webhook.Secret, err error) {
	now := s.Now()
	secret = webhook.NewSecret()
	err = s.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		before, err := tx.Endpoint(ctx, scope, id)
		if err != nil {
			return err
		}
		next, err := seal(access.EndpointSecret(scope, id, before.Secret.Version+1), []byte(secret.Reveal()))
		if err != nil {
			return err
		}
		if err := tx.RotateEndpoint(ctx, before, next, now.Add(Overlap), now); err != nil {
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

// Enable has an endpoint sent to again. What waited goes on; what it missed while
// it was disabled needs a Replay.
func (s Endpoints) Enable(ctx context.Context, scope store.Scope, id string) (e store.Endpoint, err error) {
	err = s.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.EnableEndpoint(ctx, scope, id, s.Now()); err != nil {
			return err
		}
		e, err = tx.Endpoint(ctx, scope, id)
		return err
	})
	s.wakeSender()
	return e, err
}

// Delete ends an endpoint for good.
func (s Endpoints) Delete(ctx context.Context, scope store.Scope, id string) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error { return tx.DeleteEndpoint(ctx, scope, id, s.Now()) })
}

// Replay says what an endpoint is to be told of once more: one event, everything
// since a moment, or all that it was not told of.
type Replay struct {
	NoticeID string
	Since    time.Time
	Failed   bool
}

// Replay has an endpoint told of events once more, under the ids that they have,
// and tells of how many. The error is store.ErrNotFound without such an endpoint
// or event.
func (s Endpoints) Replay(ctx context.Context, scope store.Scope, id string, what Replay) (n int64, err error) {
	switch now := s.Now(); {
	case what.NoticeID != "":
		n, err = s.Store.ReplayEvent(ctx, scope, id, what.NoticeID, now)
	case !what.Since.IsZero():
		n, err = s.Store.ReplaySince(ctx, scope, id, what.Since, now)
	case what.Failed:
		n, err = s.Store.ReplayFailed(ctx, scope, id, now)
	default:
		err = errors.New("notify: a replay needs an event, a moment or what failed")
	}
	s.wakeSender()
	return n, err
}

// Log lists the attempts to tell an endpoint something, the newest first, from
// the one before an id on.
func (s Endpoints) Log(ctx context.Context, scope store.Scope, id, before string, limit int) ([]store.DeliveryAttempt, error) {
	if _, err := s.Store.Endpoint(ctx, scope, id); err != nil {
		return nil, err
	}
	return s.Store.DeliveryLog(ctx, scope, id, before, limit)
}

// Test posts an event that is of no consequence, once, whether or not the
// endpoint is enabled. It counts neither for nor against it, and is in its log.
func (s Endpoints) Test(ctx context.Context, scope store.Scope, id string) (webhook.Result, error) {
	e, err := s.Store.Endpoint(ctx, scope, id)
	if err != nil {
		return webhook.Result{}, err
	}
	now := s.Now()
	n, err := newEndpointEvent(event.WebhookTest, e, "", now)
	if err != nil {
		return webhook.Result{}, err
	}
	secrets, err := endpointSecrets(s.Secrets, e, now)
	if err != nil {
		return webhook.Result{}, err
	}
	attempt := store.NewID()
	result := s.Poster.Post(ctx, webhook.Message{URL: e.URL, ID: n.ID, Body: n.Body, Secrets: secrets, RequestID: attempt})
	if result.Error == webhook.ClassStopped {
		return webhook.Result{}, context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx) // it was sent: the log says so
	return result, s.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.AddDeliveryAttempt(ctx, logged(attempt, e.Scope, e.ID, n, 1, now, result))
	})
}

func (s Endpoints) wakeSender() {
	if s.WakeSender != nil {
		s.WakeSender()
	}
}

// logged is an attempt as the log has it. The id of the attempt is the one that
// the endpoint was given with it.
func logged(id string, scope store.Scope, endpointID string, n store.Event, number int64, at time.Time, r webhook.Result) store.DeliveryAttempt {
	return store.DeliveryAttempt{
		Scope: scope, ID: id, EndpointID: endpointID, EventID: n.ID, Kind: n.Kind, Number: number, At: at, Took: r.Took,
		HTTPStatus: int64(r.Status), Error: r.Error, Answer: r.Answer,
	}
}

// endpointSecrets are what is signed with at a moment, the newest first.
func endpointSecrets(s access.Secrets, e store.Endpoint, now time.Time) ([]webhook.Secret, error) {
	return openSecrets(s, now, e.Secret, e.OldSecret, e.OldUntil, func(version int64) access.Place {
		return access.EndpointSecret(e.Scope, e.ID, version)
	})
}

func openSecrets(s access.Secrets, now time.Time, current, old store.SealedSecret, until time.Time, place func(int64) access.Place) ([]webhook.Secret, error) {
	sealed := []store.SealedSecret{current}
	if len(old.Sealed) > 0 && now.Before(until) {
		sealed = append(sealed, old)
	}
	secrets := make([]webhook.Secret, 0, len(sealed))
	for _, one := range sealed {
		plain, err := s.Open(place(one.Version), one.Sealed)
		if err != nil {
			return nil, err
		}
		secret, err := webhook.ParseSecret(string(plain))
		clear(plain)
		if err != nil {
			return nil, fmt.Errorf("notify: a stored secret: %w", err)
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}
