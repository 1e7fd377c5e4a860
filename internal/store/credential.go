package store

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Credential is the stored form of an API key: not the key, but its digest. The
// digest uses a secret (pepper) that the database holds only encrypted. The binding
// authenticates the other fields with the same secret, so that write access to the
// database does not change what a key may do.
type Credential struct {
	ID            string
	Prefix        string
	Environment   fiscal.Environment
	TaxpayerID    string
	Digest        []byte
	PepperVersion int64
	Scopes        []apikey.Scope
	RateLimit     int64 // requests per minute; 0: the default limit of the service
	CreatedAt     time.Time
	ExpiresAt     time.Time // zero: never
	RevokedAt     time.Time // zero: not revoked
	LastUsedAt    time.Time // zero: never used
	Binding       []byte    // nil: a program of an earlier version has stored the credential
	Suspended     Subject   // the credential, its taxpayer or its environment; empty: not suspended

	AllowedNetworks    []netip.Prefix // of the clients; empty: every client
	ClientCertificates []string       // SHA-256 fingerprints, one of which the client must have; empty: no certificate needed
}

// Scope returns the environment and the taxpayer of the credential.
func (c Credential) Scope() Scope {
	return Scope{Environment: c.Environment, TaxpayerID: c.TaxpayerID}
}

// Live reports whether the credential can be used at the given moment.
func (c Credential) Live(now time.Time) bool {
	return c.RevokedAt.IsZero() && (c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt))
}

// MaxLiveCredentials limits the usable credentials of a taxpayer in an environment.
const MaxLiveCredentials = 20

// ErrTooManyCredentials means that the taxpayer has MaxLiveCredentials.
var ErrTooManyCredentials = fmt.Errorf("a taxpayer has at most %d usable credentials in an environment", MaxLiveCredentials)

const credentialColumns = `id, prefix, environment, taxpayer_id, digest, pepper_version, scopes, rate_limit,
	created_at, expires_at, revoked_at, last_used_at, binding, allowed_networks, client_certificates,
	(SELECT min(subject) FROM suspensions
		WHERE subject IN ('credential:' || id, 'taxpayer:' || taxpayer_id, 'environment:' || environment))`

// CreateCredential stores a new credential. The error is ErrNotFound when there is no
// such taxpayer, and ErrTooManyCredentials at the limit.
func (tx *Tx) CreateCredential(ctx context.Context, c Credential) error {
	// The lock keeps another transaction from adding a credential after the count.
	if err := tx.lockTaxpayer(ctx, c.TaxpayerID); err != nil {
		return err
	}
	live, err := one(tx.rows(ctx, "count credentials", `
		SELECT count(*) FROM credentials
		WHERE taxpayer_id = $1 AND environment = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)`,
		c.TaxpayerID, c.Environment, micros(c.CreatedAt)), only[int])
	if err != nil {
		return err
	}
	if live >= MaxLiveCredentials {
		return ErrTooManyCredentials
	}
	var limit any
	if c.RateLimit > 0 {
		limit = c.RateLimit
	}
	err = tx.exec(ctx, "create credential", `
		INSERT INTO credentials (id, prefix, environment, taxpayer_id, digest, pepper_version, scopes, rate_limit, created_at, expires_at, binding,
			allowed_networks, client_certificates)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		c.ID, c.Prefix, c.Environment, c.TaxpayerID, c.Digest, c.PepperVersion, c.ScopeText(), limit,
		micros(c.CreatedAt), optionalMicros(c.ExpiresAt), optionalBytes(c.Binding), c.NetworkText(), c.CertificateText())
	if err != nil {
		return err
	}
	return tx.Audit(ctx, c.auditEntry("credential.create", nil, c.auditFields()))
}

// ScopeText returns the scopes in the order in which they are stored, separated by spaces.
func (c Credential) ScopeText() string {
	scopes := make([]string, len(c.Scopes))
	for i, s := range c.Scopes {
		scopes[i] = string(s)
	}
	return strings.Join(scopes, " ")
}

// auditFields returns what the audit log shows of a credential.
func (c Credential) auditFields() map[string]any {
	return map[string]any{
		"prefix": c.Prefix, "scopes": c.ScopeText(), "rate_limit": c.RateLimit,
		"expires_at": auditTime(c.ExpiresAt), "revoked_at": auditTime(c.RevokedAt),
		"allowed_networks": c.NetworkText(), "client_certificates": c.CertificateText(),
	}
}

// auditEntry returns a change of the credential for the audit log.
func (c Credential) auditEntry(action string, before, after map[string]any) AuditEntry {
	return AuditEntry{c.Scope(), action, "credential:" + c.ID, before, after}
}

// changeCredential changes a credential with a statement, and records the change if
// there is one. The error is ErrNotFound when there is no such credential.
func (tx *Tx) changeCredential(ctx context.Context, id, action string, s statement) error {
	before, err := tx.Credential(ctx, id)
	if err != nil {
		return err
	}
	if changed, err := tx.write(ctx, action, s); err != nil || !changed {
		return err
	}
	after, err := tx.Credential(ctx, id)
	if err != nil {
		return err
	}
	return tx.Audit(ctx, after.auditEntry(action, before.auditFields(), after.auditFields()))
}

// ExpireCredential sets when a credential expires, unless it already expires earlier.
func (tx *Tx) ExpireCredential(ctx context.Context, id string, at time.Time) error {
	return tx.changeCredential(ctx, id, "credential.expire", do(`
		UPDATE credentials SET expires_at = $2 WHERE id = $1 AND (expires_at IS NULL OR expires_at > $2)`, id, micros(at)))
}

// RevokeCredential revokes a credential permanently. It also destroys the binding, so that
// write access to the database cannot make the credential valid again. It does not change
// a revoked credential. The error is ErrNotFound when there is no such credential.
func (tx *Tx) RevokeCredential(ctx context.Context, id string, at time.Time) error {
	return tx.changeCredential(ctx, id, "credential.revoke", do(`
		UPDATE credentials SET revoked_at = $2, binding = $3 WHERE id = $1 AND revoked_at IS NULL`, id, micros(at), []byte("revoked")))
}

// BindCredential stores the binding of a credential.
func (tx *Tx) BindCredential(ctx context.Context, id string, binding []byte) error {
	return tx.exec(ctx, "bind credential", `UPDATE credentials SET binding = $2 WHERE id = $1 AND revoked_at IS NULL`, id, binding)
}

// UnboundCredentials lists the credentials with a version of the pepper that have no
// binding and are not revoked.
func (r reader) UnboundCredentials(ctx context.Context, pepperVersion int64) ([]Credential, error) {
	return collect(r.rows(ctx, "list unbound credentials", `
		SELECT `+credentialColumns+` FROM credentials
		WHERE pepper_version = $1 AND binding IS NULL AND revoked_at IS NULL ORDER BY id`, pepperVersion), (*Credential).columns)
}

// TouchCredential records the time of the last use of a credential.
func (tx *Tx) TouchCredential(ctx context.Context, id string, at time.Time) error {
	return tx.exec(ctx, "touch credential", `
		UPDATE credentials SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`, id, micros(at))
}

// Credential reads one credential.
func (r reader) Credential(ctx context.Context, id string) (Credential, error) {
	return one(r.rows(ctx, "read credential", `SELECT `+credentialColumns+` FROM credentials WHERE id = $1`, id), (*Credential).columns)
}

// CredentialByPrefix reads the credential whose key has the given public prefix.
func (r reader) CredentialByPrefix(ctx context.Context, prefix string) (Credential, error) {
	return one(r.rows(ctx, "read credential", `SELECT `+credentialColumns+` FROM credentials WHERE prefix = $1`, prefix), (*Credential).columns)
}

// Credentials lists all credentials, the oldest first.
func (r reader) Credentials(ctx context.Context) ([]Credential, error) {
	return collect(r.rows(ctx, "list credentials", `SELECT `+credentialColumns+` FROM credentials ORDER BY id`), (*Credential).columns)
}

func (c *Credential) columns() []any {
	return []any{
		&c.ID, &c.Prefix, &c.Environment, &c.TaxpayerID, &c.Digest, &c.PepperVersion, via(&c.Scopes, readScopes), orZero(&c.RateLimit),
		instant(&c.CreatedAt), instant(&c.ExpiresAt), instant(&c.RevokedAt), instant(&c.LastUsedAt), &c.Binding,
		parse(&c.AllowedNetworks, parseNetworks), via(&c.ClientCertificates, readFields), orZero(&c.Suspended),
	}
}

// readScopes reads what ScopeText returns.
func readScopes(text string) (scopes []apikey.Scope) {
	for s := range strings.FieldsSeq(text) {
		scopes = append(scopes, apikey.Scope(s))
	}
	return scopes
}

// readFields reads what CertificateText returns.
func readFields(text string) []string { return slices.Collect(strings.FieldsSeq(text)) }
