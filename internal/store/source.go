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

// Inbound is a message of a source, of which the same is heard once.
type Inbound struct {
	Scope
	SourceID   string
	MessageID  string
	At         time.Time
	Kind       string
	Outcome    string // what it led to, in one word
	DocumentID string // empty: it named none that we know
}

// ReceiveInbound records a message of a source, and tells whether it is new. One
// that comes at the same time is waited for.
func (tx *Tx) ReceiveInbound(ctx context.Context, m Inbound) (fresh bool, err error) {
	n, err := statement{`
		INSERT INTO inbound (source_id, message_id, environment, taxpayer_id, at, kind, outcome, document_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT DO NOTHING`, []any{
		m.SourceID, m.MessageID, string(m.Environment), m.TaxpayerID, micros(m.At), m.Kind, m.Outcome, m.DocumentID,
	}}.run(ctx, tx.q)
	return n > 0, tx.d.wrap("hear message", err)
}

// HasReceived tells whether a message of a source was heard before.
func (r reader) HasReceived(ctx context.Context, scope Scope, sourceID, messageID string) (bool, error) {
	var n int64
	err := r.q.QueryRowContext(ctx, `
		SELECT count(*) FROM inbound WHERE environment = $1 AND taxpayer_id = $2 AND source_id = $3 AND message_id = $4`,
		scope.Environment, scope.TaxpayerID, sourceID, messageID).Scan(&n)
	return n > 0, r.d.wrap("look for message", err)
}

// parkedFor is how long a message about an unknown document is kept.
const parkedFor = 30 * 24 * time.Hour

// Parked is a message about a document that we do not know, or not yet.
type Parked struct {
	Scope
	ID        string
	SourceID  string
	MessageID string
	Kind      string
	ENCF      string
	Body      []byte
	At        time.Time
	ExpiresAt time.Time // thirty days later
}

// Park keeps a message for a while.
func (tx *Tx) Park(ctx context.Context, p Parked) error {
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO parked (id, environment, taxpayer_id, source_id, message_id, kind, encf, body, at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		p.ID, p.Environment, p.TaxpayerID, p.SourceID, p.MessageID, p.Kind, p.ENCF, p.Body, micros(p.At), micros(p.At.Add(parkedFor)))
	return tx.d.wrap("park message", err)
}

// Parked lists the messages about a number that are kept and have not expired,
// the oldest first.
func (r reader) Parked(ctx context.Context, scope Scope, encf string, now time.Time) ([]Parked, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT id, source_id, message_id, kind, encf, body, at, expires_at FROM parked
		WHERE environment = $1 AND taxpayer_id = $2 AND encf = $3 AND expires_at > $4 ORDER BY id`,
		scope.Environment, scope.TaxpayerID, encf, micros(now))
	if err != nil {
		return nil, r.d.wrap("read parked messages", err)
	}
	return collect(r.d, "read parked messages", rows, func(row row) (Parked, error) {
		p := Parked{Scope: scope}
		var at, expires int64
		err := row.Scan(&p.ID, &p.SourceID, &p.MessageID, &p.Kind, &p.ENCF, &p.Body, &at, &expires)
		p.At, p.ExpiresAt = fromMicros(at), fromMicros(expires)
		return p, err
	})
}

// Unpark removes a message that was kept, and tells whether it was still there.
func (tx *Tx) Unpark(ctx context.Context, scope Scope, id string) (bool, error) {
	n, err := statement{`DELETE FROM parked WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		[]any{string(scope.Environment), scope.TaxpayerID, id}}.run(ctx, tx.q)
	return n > 0, tx.d.wrap("unpark message", err)
}

// PurgeParked removes the messages that have expired, and tells how many.
func (s *Store) PurgeParked(ctx context.Context, now time.Time) (n int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		n, err = statement{`DELETE FROM parked WHERE environment <> '' AND taxpayer_id <> '' AND expires_at <= $1`,
			[]any{micros(now)}}.run(ctx, tx.q)
		return tx.d.wrap("purge parked messages", err)
	})
	return n, err
}
