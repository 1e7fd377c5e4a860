package notify

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// Sources looks after the life of those who may tell us signed events.
type Sources struct {
	Store   *store.Store
	Secrets access.Secrets
	Now     func() time.Time
}

// Create makes a source for the documents of a taxpayer. The secret is shown
// once.
func (s Sources) Create(ctx context.Context, scope store.Scope) (made store.Source, secret webhook.Secret, err error) {
	if scope.Environment == fiscal.Sandbox {
		return store.Source{}, webhook.Secret{}, ErrSandbox
	}
	secret = webhook.NewSecret()
	err = s.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		made = store.Source{Scope: scope, ID: store.NewID(), Kinds: event.InboundKinds(), CreatedAt: s.Now()}
		if made.Secret, err = seal(access.SourceSecret(scope, made.ID, 1), []byte(secret.Reveal())); err != nil {
			return err
		}
		return tx.CreateSource(ctx, made)
	})
	if err != nil {
		return store.Source{}, webhook.Secret{}, err
	}
	return made, secret, nil
}

// List lists all sources, the oldest first, revoked ones too.
func (s Sources) List(ctx context.Context) ([]store.Source, error) { return s.Store.Sources(ctx) }

// Rotate gives a source a new secret. The old one is accepted as well for a day.
// The error is store.ErrNotFound for one that is revoked.
func (s Sources) Rotate(ctx context.Context, id string) (source store.Source, secret webhook.Secret, err error) {
	now := s.Now()
	secret = webhook.NewSecret()
	err = s.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		before, err := tx.AnySource(ctx, id)
		if err != nil {
			return err
		}
		next, err := seal(access.SourceSecret(before.Scope, id, before.Secret.Version+1), []byte(secret.Reveal()))
		if err != nil {
			return err
		}
		if err := tx.RotateSource(ctx, before, next, now.Add(Overlap)); err != nil {
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

// Revoke ends a source for good.
func (s Sources) Revoke(ctx context.Context, id string) error {
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		source, err := tx.AnySource(ctx, id)
		if err != nil {
			return err
		}
		return tx.RevokeSource(ctx, source.Scope, id, s.Now())
	})
}

// Find returns a source of an environment with the secrets that it may sign with
// now. The error is store.ErrNotFound when there is none, or it is revoked.
func (s Sources) Find(ctx context.Context, env fiscal.Environment, id string) (store.Source, []webhook.Secret, error) {
	source, err := s.Store.SourceOf(ctx, env, id)
	if err != nil {
		return store.Source{}, nil, err
	}
	secrets, err := openSecrets(s.Secrets, s.Now(), source.Secret, source.OldSecret, source.OldUntil, func(version int64) access.Place {
		return access.SourceSecret(source.Scope, source.ID, version)
	})
	return source, secrets, err
}
