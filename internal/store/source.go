package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Source is who may tell us signed events about the documents of a taxpayer.
type Source struct {
	Scope
	ID        string
	Kinds     []string // what it may tell
	Secret    SealedSecret
	OldSecret SealedSecret // zero: none; it is accepted as well until OldUntil
	OldUntil  time.Time
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
}

const sourceColumns = `id, environment, taxpayer_id, kinds, secret, secret_version, old_secret, old_version, old_until, created_at, revoked_at`

// CreateSource stores a new source.
func (tx *Tx) CreateSource(ctx context.Context, s Source) error {
	if err := tx.lockTaxpayer(ctx, s.TaxpayerID); err != nil {
		return err
	}
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO sources (id, environment, taxpayer_id, kinds, secret, secret_version, old_version, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7)`,
		s.ID, s.Environment, s.TaxpayerID, strings.Join(s.Kinds, ","), s.Secret.Sealed, s.Secret.Version, micros(s.CreatedAt))
	return tx.d.wrap("create source", err)
}

// Sources lists the sources of all taxpayers and environments, the oldest first.
// It is for the operator and for the master key.
func (r reader) Sources(ctx context.Context) ([]Source, error) {
	rows, err := r.q.QueryContext(ctx, `SELECT `+sourceColumns+` FROM sources WHERE environment <> '' AND taxpayer_id <> '' ORDER BY id`)
	if err != nil {
		return nil, r.d.wrap("list sources", err)
	}
	return collect(r.d, "list sources", rows, scanSource)
}

// AnySource reads a source of whichever scope, revoked ones too. It is for the
// operator.
func (r reader) AnySource(ctx context.Context, id string) (Source, error) {
	s, err := scanSource(r.q.QueryRowContext(ctx, `
		SELECT `+sourceColumns+` FROM sources WHERE environment <> '' AND taxpayer_id <> '' AND id = $1`, id))
	return s, r.d.wrap("read source", err)
}

// SourceOf finds who tells something in an environment. It says whose documents
// it may tell about. The error is ErrNotFound for one that is revoked.
func (r reader) SourceOf(ctx context.Context, env fiscal.Environment, id string) (Source, error) {
	s, err := scanSource(r.q.QueryRowContext(ctx, `
		SELECT `+sourceColumns+` FROM sources
		WHERE environment = $1 AND taxpayer_id <> '' AND id = $2 AND revoked_at IS NULL`, env, id))
	return s, r.d.wrap("read source", err)
}

func scanSource(r row) (Source, error) {
	var s Source
	var kinds string
	var created int64
	var until, revoked sql.NullInt64
	err := r.Scan(&s.ID, &s.Environment, &s.TaxpayerID, &kinds, &s.Secret.Sealed, &s.Secret.Version,
		&s.OldSecret.Sealed, &s.OldSecret.Version, &until, &created, &revoked)
	s.Kinds = strings.Split(kinds, ",")
	s.OldUntil, s.CreatedAt, s.RevokedAt = fromNull(until), fromMicros(created), fromNull(revoked)
	return s, err
}

// RotateSource gives a source its next secret. The one it had is accepted as well
// until a moment. The error is ErrNotFound when the secret is no longer the one
// that was read, or the source was revoked.
func (tx *Tx) RotateSource(ctx context.Context, s Source, next SealedSecret, oldUntil time.Time) error {
	return tx.changeOne(ctx, "rotate source", ErrNotFound, statement{`
		UPDATE sources SET old_secret = secret, old_version = secret_version, old_until = $5, secret = $6, secret_version = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND secret_version = $4 AND revoked_at IS NULL`, []any{
		string(s.Environment), s.TaxpayerID, s.ID, s.Secret.Version, micros(oldUntil), next.Sealed, next.Version,
	}})
}

// RewrapSource replaces the sealed secrets of a source by the same ones under
// another master key.
func (tx *Tx) RewrapSource(ctx context.Context, s Source) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE sources SET secret = $4, old_secret = $5 WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		s.Environment, s.TaxpayerID, s.ID, s.Secret.Sealed, optionalBytes(s.OldSecret.Sealed))
	return tx.d.wrap("rewrap source", err)
}

// RevokeSource ends a source for good. One that is revoked stays as it is.
func (tx *Tx) RevokeSource(ctx context.Context, scope Scope, id string, now time.Time) error {
	return tx.changeOne(ctx, "revoke source", ErrNotFound, statement{`
		UPDATE sources SET revoked_at = coalesce(revoked_at, $4), old_secret = NULL, old_until = NULL
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`, []any{
		string(scope.Environment), scope.TaxpayerID, id, micros(now),
	}})
}
