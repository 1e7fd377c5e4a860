package store

import (
	"context"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Source is a system that may send signed messages about the documents of a taxpayer.
type Source struct {
	Scope
	ID        string
	Kinds     []string // kinds of messages that it may send
	Secret    SealedSecret
	OldSecret SealedSecret // zero: none; until OldUntil its signatures are accepted too
	OldUntil  time.Time
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
}

const sourceColumns = `id, environment, taxpayer_id, kinds, secret, secret_version, old_secret, old_version, old_until, created_at, revoked_at`

// CreateSource stores a new source. The error is ErrNotFound when there is no such
// taxpayer.
func (tx *Tx) CreateSource(ctx context.Context, s Source) error {
	if err := tx.lockTaxpayer(ctx, s.TaxpayerID); err != nil {
		return err
	}
	err := tx.exec(ctx, "create source", `
		INSERT INTO sources (id, environment, taxpayer_id, kinds, secret, secret_version, old_version, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, 0, $7)`,
		s.ID, s.Environment, s.TaxpayerID, strings.Join(s.Kinds, ","), s.Secret.Sealed, s.Secret.Version, micros(s.CreatedAt))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{s.Scope, "source.create", "source:" + s.ID, nil, map[string]any{"kinds": strings.Join(s.Kinds, ",")}})
}

// Sources lists the sources of all taxpayers and environments, the oldest first.
// The operator and the rotation of the master key use it.
func (r reader) Sources(ctx context.Context) ([]Source, error) {
	return collect(r.rows(ctx, "list sources", `SELECT `+sourceColumns+` FROM sources ORDER BY id`), (*Source).columns)
}

// AnySource reads a source of any scope, even a revoked one. Only the operator uses it.
func (r reader) AnySource(ctx context.Context, id string) (Source, error) {
	return one(r.rows(ctx, "read source", `
		SELECT `+sourceColumns+` FROM sources WHERE id = $1`, id), (*Source).columns)
}

// SourceOf reads the source that sends a message to an environment. Its scope names the
// taxpayer whose documents it may report on. The error is ErrNotFound when the source is
// revoked.
func (r reader) SourceOf(ctx context.Context, env fiscal.Environment, id string) (Source, error) {
	return one(r.rows(ctx, "read source", `
		SELECT `+sourceColumns+` FROM sources
		WHERE environment = $1 AND id = $2 AND revoked_at IS NULL`, env, id), (*Source).columns)
}

func (s *Source) columns() []any {
	return []any{
		&s.ID, &s.Environment, &s.TaxpayerID, via(&s.Kinds, readKinds), &s.Secret.Sealed, &s.Secret.Version,
		&s.OldSecret.Sealed, &s.OldSecret.Version, instant(&s.OldUntil), instant(&s.CreatedAt), instant(&s.RevokedAt),
	}
}

// RotateSource gives a source its next secret. Until oldUntil the previous secret is
// accepted too. The error is ErrNotFound when the source was revoked, or has another
// secret than s.
func (tx *Tx) RotateSource(ctx context.Context, s Source, next SealedSecret, oldUntil time.Time) error {
	err := tx.writeOne(ctx, "rotate source", ErrNotFound, do(`
		UPDATE sources SET old_secret = secret, old_version = secret_version, old_until = $5, secret = $6, secret_version = $7
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND secret_version = $4 AND revoked_at IS NULL`,
		string(s.Environment), s.TaxpayerID, s.ID, s.Secret.Version, micros(oldUntil), next.Sealed, next.Version))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{s.Scope, "source.rotate", "source:" + s.ID,
		map[string]any{"secret_version": s.Secret.Version},
		map[string]any{"secret_version": next.Version, "old_until": auditTime(oldUntil)}})
}

// RewrapSource replaces the encrypted secrets of a source. They are the same secrets,
// encrypted with another master key.
func (tx *Tx) RewrapSource(ctx context.Context, s Source) error {
	return tx.exec(ctx, "rewrap source", `
		UPDATE sources SET secret = $4, old_secret = $5 WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		s.Environment, s.TaxpayerID, s.ID, s.Secret.Sealed, optionalBytes(s.OldSecret.Sealed))
}

// RevokeSource revokes a source permanently. A repetition does not change the time of
// the revocation. The error is ErrNotFound when there is no such source.
func (tx *Tx) RevokeSource(ctx context.Context, scope Scope, id string, now time.Time) error {
	err := tx.writeOne(ctx, "revoke source", ErrNotFound, do(`
		UPDATE sources SET revoked_at = coalesce(revoked_at, $4), old_secret = NULL, old_until = NULL
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		string(scope.Environment), scope.TaxpayerID, id, micros(now)))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{scope, "source.revoke", "source:" + id, nil, map[string]any{"revoked_at": auditTime(now)}})
}
