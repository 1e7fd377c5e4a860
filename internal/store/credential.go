package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Credential is what is kept of an API key: never the key itself, only its
// digest under a secret that is not in the database in the clear.
type Credential struct {
	ID            string
	Prefix        string
	Environment   fiscal.Environment
	TaxpayerID    string
	Digest        []byte
	PepperVersion int64
	Scopes        []apikey.Scope
	RateLimit     int64 // requests a minute; 0 means the service's own limit
	CreatedAt     time.Time
	ExpiresAt     time.Time // zero: never
	RevokedAt     time.Time // zero: not revoked
	LastUsedAt    time.Time // zero: never used
}

// Live tells whether the credential may be used at the given moment.
func (c Credential) Live(now time.Time) bool {
	return c.RevokedAt.IsZero() && (c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt))
}

// MaxLiveCredentials bounds the usable keys of a taxpayer in an environment.
const MaxLiveCredentials = 20

// ErrTooManyCredentials says that the bound is reached.
var ErrTooManyCredentials = fmt.Errorf("a taxpayer has at most %d usable credentials in an environment", MaxLiveCredentials)

const credentialColumns = `id, prefix, environment, taxpayer_id, digest, pepper_version, scopes, rate_limit,
	created_at, expires_at, revoked_at, last_used_at`

// CreateCredential stores a new credential.
func (tx *Tx) CreateCredential(ctx context.Context, c Credential) error {
	// The taxpayer's row is the lock under which its live credentials are counted.
	found, err := tx.q.ExecContext(ctx, `UPDATE taxpayers SET updated_at = updated_at WHERE id = $1`, c.TaxpayerID)
	if err != nil {
		return tx.d.wrap("lock taxpayer", err)
	}
	if n, err := found.RowsAffected(); err != nil || n == 0 {
		return tx.d.wrap("lock taxpayer", orNotFound(err))
	}
	var live int
	err = tx.q.QueryRowContext(ctx, `
		SELECT count(*) FROM credentials
		WHERE taxpayer_id = $1 AND environment = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)`,
		c.TaxpayerID, c.Environment, micros(c.CreatedAt)).Scan(&live)
	if err != nil {
		return tx.d.wrap("count credentials", err)
	}
	if live >= MaxLiveCredentials {
		return ErrTooManyCredentials
	}
	scopes := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		scopes[i] = string(s)
	}
	var limit any
	if c.RateLimit > 0 {
		limit = c.RateLimit
	}
	_, err = tx.q.ExecContext(ctx, `
		INSERT INTO credentials (id, prefix, environment, taxpayer_id, digest, pepper_version, scopes, rate_limit, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		c.ID, c.Prefix, c.Environment, c.TaxpayerID, c.Digest, c.PepperVersion, strings.Join(scopes, " "), limit,
		micros(c.CreatedAt), optionalMicros(c.ExpiresAt))
	return tx.d.wrap("create credential", err)
}

// ExpireCredential sets when a credential ends, unless it ends sooner.
func (tx *Tx) ExpireCredential(ctx context.Context, id string, at time.Time) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE credentials SET expires_at = $2 WHERE id = $1 AND (expires_at IS NULL OR expires_at > $2)`, id, micros(at))
	return tx.d.wrap("expire credential", err)
}

// RevokeCredential ends a credential for good. Repeating it changes nothing.
func (tx *Tx) RevokeCredential(ctx context.Context, id string, at time.Time) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE credentials SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL`, id, micros(at))
	return tx.d.wrap("revoke credential", err)
}

// TouchCredential notes that a credential was used.
func (tx *Tx) TouchCredential(ctx context.Context, id string, at time.Time) error {
	_, err := tx.q.ExecContext(ctx, `
		UPDATE credentials SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`, id, micros(at))
	return tx.d.wrap("touch credential", err)
}

// Credential reads one credential.
func (r reader) Credential(ctx context.Context, id string) (Credential, error) {
	c, err := scanCredential(r.q.QueryRowContext(ctx, `SELECT `+credentialColumns+` FROM credentials WHERE id = $1`, id))
	return c, r.d.wrap("read credential", err)
}

// CredentialByPrefix reads the credential whose key has this public prefix.
func (r reader) CredentialByPrefix(ctx context.Context, prefix string) (Credential, error) {
	c, err := scanCredential(r.q.QueryRowContext(ctx, `SELECT `+credentialColumns+` FROM credentials WHERE prefix = $1`, prefix))
	return c, r.d.wrap("read credential", err)
}

// Credentials lists all credentials, the oldest first.
func (r reader) Credentials(ctx context.Context) ([]Credential, error) {
	rows, err := r.q.QueryContext(ctx, `SELECT `+credentialColumns+` FROM credentials ORDER BY id`)
	if err != nil {
		return nil, r.d.wrap("list credentials", err)
	}
	return collect(r.d, "list credentials", rows, scanCredential)
}

func scanCredential(r row) (Credential, error) {
	var c Credential
	var scopes string
	var created int64
	var limit, expires, revoked, used sql.NullInt64
	err := r.Scan(&c.ID, &c.Prefix, &c.Environment, &c.TaxpayerID, &c.Digest, &c.PepperVersion, &scopes, &limit,
		&created, &expires, &revoked, &used)
	if err != nil {
		return Credential{}, err
	}
	for s := range strings.FieldsSeq(scopes) {
		c.Scopes = append(c.Scopes, apikey.Scope(s))
	}
	c.RateLimit = limit.Int64
	c.CreatedAt = fromMicros(created)
	c.ExpiresAt, c.RevokedAt, c.LastUsedAt = fromNull(expires), fromNull(revoked), fromNull(used)
	return c, nil
}
