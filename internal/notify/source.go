package notify

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// SourcesOptions configure Sources. All of them are required.
type SourcesOptions struct {
	Store   *store.Store
	Secrets *access.Secrets
	Now     func() time.Time
}

// Sources manages event sources. A source is a program that forwards signed messages of
// buyers to us.
type Sources struct {
	o SourcesOptions
}

// NewSources returns the sources of a store. It fails when an option is missing.
func NewSources(o SourcesOptions) (*Sources, error) {
	if o.Store == nil || o.Secrets == nil || o.Now == nil {
		return nil, errors.New("notify: sources need Store, Secrets and Now")
	}
	return &Sources{o: o}, nil
}

// Get returns a source of any taxpayer, also a revoked one. It fails with
// store.ErrNotFound.
func (s *Sources) Get(ctx context.Context, id string) (store.Source, error) {
	return s.o.Store.AnySource(ctx, id)
}

// Create creates a source for a taxpayer and returns its secret, which can be shown only
// once. It fails with store.ErrNotFound when the taxpayer does not exist, and with
// ErrSandbox in the sandbox.
func (s *Sources) Create(ctx context.Context, scope store.Scope) (made store.Source, secret webhook.Secret, err error) {
	if scope.Environment == fiscal.Sandbox {
		return store.Source{}, webhook.Secret{}, ErrSandbox
	}
	secret = webhook.NewSecret()
	err = s.o.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		made = store.Source{Scope: scope, ID: store.NewID(), Kinds: event.InboundKinds(), CreatedAt: s.o.Now()}
		if made.Secret, err = seal(access.SourceBinding(scope, made.ID, 1), []byte(secret.Reveal())); err != nil {
			return err
		}
		return tx.CreateSource(ctx, made)
	})
	if err != nil {
		return store.Source{}, webhook.Secret{}, err
	}
	return made, secret, nil
}

// Rotate gives a source a new secret and returns it. Messages with the old secret are
// accepted for the overlap. Rotate fails with store.ErrNotFound when the source does not
// exist or is revoked.
func (s *Sources) Rotate(ctx context.Context, id string, overlap time.Duration) (source store.Source, secret webhook.Secret, err error) {
	if err := checkOverlap(overlap); err != nil {
		return store.Source{}, webhook.Secret{}, err
	}
	now := s.o.Now()
	secret = webhook.NewSecret()
	err = s.o.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		before, err := tx.AnySource(ctx, id)
		if err != nil {
			return err
		}
		next, err := seal(access.SourceBinding(before.Scope, id, before.Secret.Version+1), []byte(secret.Reveal()))
		if err != nil {
			return err
		}
		if err := tx.RotateSource(ctx, before, next, now.Add(overlap)); err != nil {
			return err
		}
		source, err = tx.AnySource(ctx, id)
		return err
	})
	if err != nil {
		return store.Source{}, webhook.Secret{}, err
	}
	return source, secret, nil
}

// Revoke revokes a source permanently. It fails with store.ErrNotFound.
func (s *Sources) Revoke(ctx context.Context, id string) error {
	return s.o.Store.Update(ctx, func(tx *store.Tx) error {
		source, err := tx.AnySource(ctx, id)
		if err != nil {
			return err
		}
		return tx.RevokeSource(ctx, source.Scope, id, s.o.Now())
	})
}

// Find returns a source of an environment and the secrets that are valid now. It fails
// with store.ErrNotFound when the source does not exist or is revoked.
func (s *Sources) Find(ctx context.Context, env fiscal.Environment, id string) (store.Source, []webhook.Secret, error) {
	source, err := s.o.Store.SourceOf(ctx, env, id)
	if err != nil {
		return store.Source{}, nil, err
	}
	secrets, err := openSecrets(s.o.Secrets, s.o.Now(), source.Secret, source.OldSecret, source.OldUntil, func(version int64) access.Binding {
		return access.SourceBinding(source.Scope, source.ID, version)
	})
	return source, secrets, err
}
