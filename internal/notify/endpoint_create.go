package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// CreateEndpoint is the name of the operation for its idempotency keys.
const CreateEndpoint = "create_webhook_endpoint"

// ErrMismatch means that the idempotency key was used with another request.
var ErrMismatch = errors.New("idempotency key used with another request")

// EndpointSpec describes an endpoint to create.
type EndpointSpec struct {
	Scope       store.Scope
	URL         string
	Kinds       []string
	Description string
	Form        store.Form // of the person who creates the endpoint; zero for a command and for the API
}

// Intent identifies the request that creates an endpoint, by its idempotency key. The
// commands of the operator have no key and pass the zero Intent.
type Intent struct {
	Key         string
	Fingerprint []byte
	RawDigest   []byte
	RequestID   string
}

// Created is the result of a creation. When an earlier equal request has created the
// endpoint, Replayed is true and only Answer is set. Answer is empty when the request has
// no idempotency key.
type Created struct {
	Endpoint store.Endpoint
	Secret   webhook.Secret
	Answer   store.StoredReply
	Replayed bool
}

// firstSecret is the version of the secret that an endpoint is created with.
const firstSecret = 1

// errKnownKey means that the idempotency key was used before.
var errKnownKey = errors.New("idempotency key used before")

// Create creates an endpoint with a new secret, which can be shown only once. When the
// idempotency key was used before, Create returns the stored answer, even if the current
// rules would refuse the request. It fails with fiscal.Problems when the request is
// invalid, with store.ErrNotFound when the taxpayer does not exist, and with
// store.ErrTooManyEndpoints, ErrMismatch or ErrSandbox, and with a *store.FormUsedError when
// the form of the spec has created an endpoint before.
func (s *Endpoints) Create(ctx context.Context, n EndpointSpec, in Intent) (Created, error) {
	if n.Scope.Environment == fiscal.Sandbox {
		return Created{}, ErrSandbox
	}
	made, err := s.create(ctx, n, in)
	if err == nil || in.Key == "" {
		return made, err
	}
	known, lookupErr := s.StoredAnswer(ctx, n.Scope, in)
	switch {
	case errors.Is(err, errKnownKey) && lookupErr != nil:
		return Created{}, store.Vanished("answer of an idempotency key", lookupErr)
	case errors.Is(lookupErr, store.ErrNotFound), errors.Is(lookupErr, store.ErrUnavailable):
		return Created{}, err
	}
	return known, lookupErr
}

func (s *Endpoints) create(ctx context.Context, n EndpointSpec, in Intent) (made Created, err error) {
	if problems := s.Check(n); len(problems) > 0 {
		return Created{}, problems
	}
	now := s.now().UTC().Truncate(time.Millisecond)
	secret := webhook.NewSecret()
	err = s.secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		e := store.Endpoint{
			Scope: n.Scope, ID: store.NewID(), URL: n.URL, Kinds: n.Kinds, Description: n.Description,
			Status: store.EndpointEnabled, Concurrency: store.MaxConcurrency, CreatedAt: now, UpdatedAt: now,
		}
		if e.Secret, err = seal(access.EndpointBinding(e.Scope, e.ID, firstSecret), []byte(secret.Reveal())); err != nil {
			return err
		}
		made = Created{Endpoint: e, Secret: secret}
		if in.Key != "" {
			if made.Answer, err = storeAnswer(ctx, tx, seal, made, in); err != nil {
				return err
			}
		}
		if err := tx.UseForm(ctx, e.Scope, n.Form, "create_webhook", e.ID, now); err != nil {
			return err
		}
		return tx.CreateEndpoint(ctx, e)
	})
	if err != nil {
		return Created{}, err
	}
	return made, nil
}

// storeAnswer stores the answer to a creation. The body contains the secret and is
// therefore sealed. storeAnswer fails with errKnownKey when there is an answer for the
// key already.
func storeAnswer(ctx context.Context, tx *store.Tx, seal access.Sealer, made Created, in Intent) (store.StoredReply, error) {
	e := made.Endpoint
	body, err := envelope.Encode(NewEndpointResource(e, made.Secret), envelope.Meta{RequestID: in.RequestID})
	if err != nil {
		return store.StoredReply{}, fmt.Errorf("notify: encode the answer: %w", err)
	}
	stored := store.StoredReply{
		Scope: e.Scope, Operation: CreateEndpoint, Key: in.Key, Fingerprint: in.Fingerprint, RawDigest: in.RawDigest,
		ObjectID: e.ID, HTTPStatus: http.StatusCreated, Location: EndpointPath(e), RequestID: in.RequestID, CreatedAt: e.CreatedAt, Body: body,
	}
	sealed, err := seal(access.AnswerBinding(e.Scope, CreateEndpoint, in.Key), body)
	if err != nil {
		return store.StoredReply{}, err
	}
	fresh, err := tx.RememberReply(ctx, stored, sealed)
	if err == nil && !fresh {
		err = errKnownKey
	}
	return stored, err
}

// StoredAnswer returns the stored answer of an earlier equal request, without the secret
// when that was rotated since. It fails with store.ErrNotFound when the key is new, and
// with ErrMismatch when the key was used with another request.
func (s *Endpoints) StoredAnswer(ctx context.Context, scope store.Scope, in Intent) (Created, error) {
	known, err := s.store.StoredReply(ctx, scope, CreateEndpoint, in.Key)
	if err != nil {
		return Created{}, err
	}
	if !bytes.Equal(known.Fingerprint, in.Fingerprint) {
		return Created{}, ErrMismatch
	}
	sealed, err := s.store.SealedAnswer(ctx, scope, CreateEndpoint, in.Key)
	if err != nil {
		return Created{}, err
	}
	known.Body, err = s.secrets.Open(access.AnswerBinding(scope, CreateEndpoint, in.Key), sealed.Secret.Sealed)
	if err != nil {
		return Created{}, err
	}
	version, err := s.store.EndpointSecretVersion(ctx, scope, known.ObjectID)
	if err != nil {
		return Created{}, err
	}
	if version != firstSecret {
		if known.Body, err = withoutSecret(known.Body); err != nil {
			return Created{}, err
		}
	}
	return Created{Answer: known, Replayed: true}, nil
}
