package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
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

const (
	maxDescription = 200
	maxProblems    = 100 // of the list of kinds
)

// Check returns all problems of a new endpoint, with the field names of the API.
func (s *Endpoints) Check(n EndpointSpec) fiscal.Problems {
	var all fiscal.Problems
	add := func(field, code string, message lang.Message) {
		all = append(all, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	switch {
	case !utf8.ValidString(n.Description) || strings.ContainsFunc(n.Description, unicode.IsControl):
		add("description", fiscal.CodeInvalidCharacters, lang.Messagef("must not contain control characters", "no debe tener caracteres de control"))
	case utf8.RuneCountInString(n.Description) > maxDescription:
		add("description", fiscal.CodeTooLong, fiscal.AtMost(maxDescription))
	}
	known := event.Kinds()
	for i, kind := range n.Kinds {
		field := "events." + strconv.Itoa(i)
		switch {
		case kind != event.All && !slices.Contains(known, kind):
			add(field, fiscal.CodeInvalidEnum, lang.Messagef("must be * or a kind of event", "debe ser * o un tipo de evento"))
		case slices.Contains(n.Kinds[:i], kind):
			add(field, fiscal.CodeDuplicated, lang.Messagef("must not occur twice", "no debe aparecer dos veces"))
		}
		if len(all) == maxProblems {
			break
		}
	}
	if len(n.Kinds) == 0 {
		add("events", fiscal.CodeTooFewItems, lang.Messagef("must name * or at least one kind of event", "debe nombrar * o por lo menos un tipo de evento"))
	}
	switch err := webhook.CheckURL(n.URL, s.o.Guard); {
	case n.URL == "":
		add("url", fiscal.CodeRequired, lang.Messagef("is required", "es obligatorio"))
	case len(n.URL) > netguard.MaxURL:
		add("url", fiscal.CodeTooLong, fiscal.AtMost(netguard.MaxURL))
	case n.URL != strings.TrimSpace(n.URL):
		add("url", fiscal.CodeInvalidFormat, lang.Messagef("must not begin or end with blanks", "no debe comenzar ni terminar con espacios"))
	case err != nil:
		add("url", fiscal.CodeInvalidFormat, lang.Messagef(
			"must be an https address of a public host at port 443: %s",
			"debe ser una dirección https de un servidor público en el puerto 443: %s", err))
	}
	return all
}

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
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	secret := webhook.NewSecret()
	err = s.o.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
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
	known, err := s.o.Store.StoredReply(ctx, scope, CreateEndpoint, in.Key)
	if err != nil {
		return Created{}, err
	}
	if !bytes.Equal(known.Fingerprint, in.Fingerprint) {
		return Created{}, ErrMismatch
	}
	sealed, err := s.o.Store.SealedAnswer(ctx, scope, CreateEndpoint, in.Key)
	if err != nil {
		return Created{}, err
	}
	known.Body, err = s.o.Secrets.Open(access.AnswerBinding(scope, CreateEndpoint, in.Key), sealed.Secret.Sealed)
	if err != nil {
		return Created{}, err
	}
	version, err := s.o.Store.EndpointSecretVersion(ctx, scope, known.ObjectID)
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
