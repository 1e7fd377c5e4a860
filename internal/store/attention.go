package store

import (
	"context"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// EndingCertificate is the certificate of a taxpayer that lasts longest.
type EndingCertificate struct {
	TaxpayerID string
	NotAfter   time.Time
}

// EndingCertificates lists the taxpayers of an environment whose certificates all end
// before a moment, the first end first. Revoked certificates do not count.
func (r reader) EndingCertificates(ctx context.Context, env fiscal.Environment, before time.Time) ([]EndingCertificate, error) {
	return collect(r.rows(ctx, "list ending certificates", `
		SELECT taxpayer_id, max(not_after) FROM certificates WHERE environment = $1 AND revoked_at IS NULL
		GROUP BY taxpayer_id HAVING max(not_after) < $2 ORDER BY 2, 1`, env, micros(before)), func(c *EndingCertificate) []any { return []any{&c.TaxpayerID, instant(&c.NotAfter)} })
}

// EndingCredential is a credential that is valid and ends soon.
type EndingCredential struct {
	TaxpayerID, ID, Prefix string
	ExpiresAt              time.Time
}

// EndingCredentials lists the credentials of an environment that are valid at now and end
// before another moment, the first end first.
func (r reader) EndingCredentials(ctx context.Context, env fiscal.Environment, now, before time.Time) ([]EndingCredential, error) {
	return collect(r.rows(ctx, "list ending credentials", `
		SELECT taxpayer_id, id, prefix, expires_at FROM credentials
		WHERE environment = $1 AND revoked_at IS NULL AND expires_at > $2 AND expires_at < $3 ORDER BY expires_at, id`,
		env, micros(now), micros(before)), func(c *EndingCredential) []any { return []any{&c.TaxpayerID, &c.ID, &c.Prefix, instant(&c.ExpiresAt)} })
}

// NumbersLeft is how many numbers of a type a taxpayer has left.
type NumbersLeft struct {
	TaxpayerID string
	NumberFigure
}

// NumbersLeft returns the numbers that the taxpayers of an environment have left on a
// day, one entry for each taxpayer and type.
func (r reader) NumbersLeft(ctx context.Context, env fiscal.Environment, day fiscal.Date) ([]NumbersLeft, error) {
	return collect(r.rows(ctx, "read numbers left", `
		SELECT taxpayer_id, ecf_type,
			cast(sum(CASE WHEN fenced_at IS NULL AND (expires = '' OR expires >= $2) THEN last_number - next_number + 1 ELSE 0 END) AS bigint),
			cast(sum(CASE WHEN fenced_at IS NULL THEN 0 ELSE 1 END) AS bigint)
		FROM number_ranges WHERE environment = $1 GROUP BY taxpayer_id, ecf_type ORDER BY taxpayer_id, ecf_type`, env, day.String()), func(n *NumbersLeft) []any { return []any{&n.TaxpayerID, &n.Type, &n.Left, &n.Fenced} })
}

// TroubledEndpoint is an endpoint that fails or is disabled.
type TroubledEndpoint struct {
	TaxpayerID, ID, URL string
	Disabled            bool
	Failures            int64
	FailingSince        time.Time // zero: it does not fail
}

// TroubledEndpoints lists the endpoints of an environment whose last delivery failed, or
// that the service or a person has disabled.
func (r reader) TroubledEndpoints(ctx context.Context, env fiscal.Environment) ([]TroubledEndpoint, error) {
	return collect(r.rows(ctx, "list troubled endpoints", `
		SELECT taxpayer_id, id, url, CASE WHEN status = 'disabled' THEN 1 ELSE 0 END, failures, failing_since FROM endpoints
		WHERE environment = $1 AND (status = 'disabled' OR status = 'enabled' AND failures > 0) ORDER BY id`, env), func(e *TroubledEndpoint) []any {
		return []any{&e.TaxpayerID, &e.ID, &e.URL, &e.Disabled, &e.Failures, instant(&e.FailingSince)}
	})
}

// Contingencies lists the contingencies of an environment, the newest first.
func (r reader) Contingencies(ctx context.Context, env fiscal.Environment, limit int) ([]Contingency, error) {
	return collect(r.rows(ctx, "list contingencies", `
		SELECT started_at, ended_at FROM contingencies WHERE environment = $1 ORDER BY started_at DESC LIMIT `+strconv.Itoa(limit), env), contingencyOf(env))
}
