package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// EndpointStatus says whether the sender sends events to an endpoint.
type EndpointStatus string

// The states of an endpoint. No method returns a deleted one.
const (
	EndpointEnabled  EndpointStatus = "enabled"
	EndpointDisabled EndpointStatus = "disabled"
)

// Endpoint is a URL of an integrator that receives events.
type Endpoint struct {
	Scope
	ID             string
	URL            string
	Kinds          []string // "*" stands for all
	Description    string
	Status         EndpointStatus
	DisabledReason string
	Secret         SealedSecret
	OldSecret      SealedSecret // zero: none; until OldUntil it signs in addition to Secret
	OldUntil       time.Time
	Failures       int64     // since the last success
	FailingSince   time.Time // time of the first of them; zero: none
	LastFailureAt  time.Time
	Concurrency    int64 // how many deliveries may be in progress at a time
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// MaxConcurrency is the highest Concurrency of an endpoint.
const MaxConcurrency = 4

// MaxEndpoints limits the endpoints of a taxpayer in an environment.
const MaxEndpoints = 10

// ErrTooManyEndpoints means that the taxpayer has MaxEndpoints.
var ErrTooManyEndpoints = fmt.Errorf("a taxpayer has at most %d webhook endpoints in an environment", MaxEndpoints)

const endpointColumns = `id, environment, taxpayer_id, url, kinds, description, status, disabled_reason,
	secret, secret_version, old_secret, old_version, old_until, failures, failing_since, last_failure_at, concurrency,
	created_at, updated_at`

// CreateEndpoint stores a new endpoint and enables it. The error is ErrNotFound when
// there is no such taxpayer, and ErrTooManyEndpoints at the limit.
func (tx *Tx) CreateEndpoint(ctx context.Context, e Endpoint) error {
	// The lock keeps another transaction from adding an endpoint after the count.
	if err := tx.lockTaxpayer(ctx, e.TaxpayerID); err != nil {
		return err
	}
	have, err := one(tx.rows(ctx, "count endpoints", `
		SELECT count(*) FROM endpoints WHERE environment = $1 AND taxpayer_id = $2 AND status <> 'deleted'`,
		e.Environment, e.TaxpayerID), only[int])
	if err != nil {
		return err
	}
	if have >= MaxEndpoints {
		return ErrTooManyEndpoints
	}
	err = tx.exec(ctx, "create endpoint", `
		INSERT INTO endpoints (id, environment, taxpayer_id, url, kinds, description, status, disabled_reason,
			secret, secret_version, old_version, failures, rest_until, concurrency, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, 'enabled', '', $7, $8, 0, 0, 0, $9, $10, $11)`,
		e.ID, e.Environment, e.TaxpayerID, e.URL, ","+strings.Join(e.Kinds, ",")+",", e.Description,
		e.Secret.Sealed, e.Secret.Version, MaxConcurrency, micros(e.CreatedAt), micros(e.UpdatedAt))
	if err != nil {
		return err
	}
	e.Status = EndpointEnabled
	return tx.auditEndpoint(ctx, "webhook.create", nil, e)
}

// auditEndpoint records the change of an endpoint. before is nil for a new one.
func (tx *Tx) auditEndpoint(ctx context.Context, action string, before *Endpoint, after Endpoint) error {
	fields := func(e Endpoint) map[string]any {
		return map[string]any{
			"url": e.URL, "events": strings.Join(e.Kinds, ","), "description": e.Description, "status": e.Status,
			"disabled_reason": e.DisabledReason, "secret_version": e.Secret.Version, "old_until": auditTime(e.OldUntil),
		}
	}
	c := AuditEntry{after.Scope, action, "webhook:" + after.ID, nil, fields(after)}
	if before != nil {
		c.Before = fields(*before)
	}
	return tx.Audit(ctx, c)
}

// changeEndpoint changes an endpoint with a statement and records the change. The error
// is ErrNotFound when there is no such endpoint, or when the statement does not match it.
func (tx *Tx) changeEndpoint(ctx context.Context, scope Scope, id, action string, s statement) error {
	before, err := tx.Endpoint(ctx, scope, id)
	if err != nil {
		return err
	}
	if err := tx.writeOne(ctx, action, ErrNotFound, s); err != nil {
		return err
	}
	after, err := tx.Endpoint(ctx, scope, id)
	if err != nil {
		return err
	}
	return tx.auditEndpoint(ctx, action, &before, after)
}

// Endpoint reads an endpoint of the scope.
func (r reader) Endpoint(ctx context.Context, scope Scope, id string) (Endpoint, error) {
	return one(r.rows(ctx, "read endpoint", `
		SELECT `+endpointColumns+` FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status <> 'deleted'`,
		scope.Environment, scope.TaxpayerID, id), (*Endpoint).columns)
}

// EndpointSecretVersion returns the version of the secret of an endpoint. For a deleted one
// it is the last version.
func (r reader) EndpointSecretVersion(ctx context.Context, scope Scope, id string) (int64, error) {
	return one(r.rows(ctx, "read endpoint", `
		SELECT secret_version FROM endpoints WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		scope.Environment, scope.TaxpayerID, id), only[int64])
}

// Endpoints lists the endpoints of a taxpayer, the newest first. before is the id of
// the endpoint before the first one of the page; empty: start with the newest.
func (r reader) Endpoints(ctx context.Context, scope Scope, before string, limit int) ([]Endpoint, error) {
	return collect(r.rows(ctx, "list endpoints", `
		SELECT `+endpointColumns+` FROM endpoints
		WHERE environment = $1 AND taxpayer_id = $2 AND status <> 'deleted' AND (cast($3 AS text) = '' OR id < $3)
		ORDER BY id DESC LIMIT $4`, scope.Environment, scope.TaxpayerID, before, limit), (*Endpoint).columns)
}

// AllEndpoints lists the endpoints of all taxpayers and environments, the oldest
// first. The operator and the rotation of the master key use it.
func (r reader) AllEndpoints(ctx context.Context) ([]Endpoint, error) {
	return collect(r.rows(ctx, "list endpoints", `
		SELECT `+endpointColumns+` FROM endpoints
		WHERE status <> 'deleted' ORDER BY id`), (*Endpoint).columns)
}

// AnyEndpoint reads an endpoint of any scope. Only the operator uses it.
func (r reader) AnyEndpoint(ctx context.Context, id string) (Endpoint, error) {
	return one(r.rows(ctx, "read endpoint", `
		SELECT `+endpointColumns+` FROM endpoints
		WHERE id = $1 AND status <> 'deleted'`, id), (*Endpoint).columns)
}

func (e *Endpoint) columns() []any {
	return []any{
		&e.ID, &e.Environment, &e.TaxpayerID, &e.URL, via(&e.Kinds, readKinds), &e.Description, &e.Status, &e.DisabledReason,
		&e.Secret.Sealed, &e.Secret.Version, &e.OldSecret.Sealed, &e.OldSecret.Version, instant(&e.OldUntil), &e.Failures,
		instant(&e.FailingSince), instant(&e.LastFailureAt), &e.Concurrency, instant(&e.CreatedAt), instant(&e.UpdatedAt),
	}
}

// readKinds reads the stored form of kinds, which may begin and end with a comma.
func readKinds(text string) []string { return strings.Split(strings.Trim(text, ","), ",") }

// RotateEndpoint gives an endpoint its next secret. Until oldUntil the previous secret
// signs too. The error is ErrNotFound when the endpoint was deleted, or has another
// secret than e.
func (tx *Tx) RotateEndpoint(ctx context.Context, e Endpoint, next SealedSecret, oldUntil, now time.Time) error {
	return tx.changeEndpoint(ctx, e.Scope, e.ID, "webhook.rotate", do(`
		UPDATE endpoints SET old_secret = secret, old_version = secret_version, old_until = $5,
			secret = $6, secret_version = $7, updated_at = $8
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND secret_version = $4 AND status <> 'deleted'`,
		string(e.Environment), e.TaxpayerID, e.ID, e.Secret.Version, micros(oldUntil), next.Sealed, next.Version, micros(now)))
}

// RewrapEndpoint replaces the encrypted secrets of an endpoint. They are the same
// secrets, encrypted with another master key.
func (tx *Tx) RewrapEndpoint(ctx context.Context, e Endpoint) error {
	return tx.exec(ctx, "rewrap endpoint", `
		UPDATE endpoints SET secret = $4, old_secret = $5 WHERE environment = $1 AND taxpayer_id = $2 AND id = $3`,
		e.Environment, e.TaxpayerID, e.ID, e.Secret.Sealed, optionalBytes(e.OldSecret.Sealed))
}

// EnableEndpoint enables an endpoint and resets its failures. The sender continues
// with the deliveries that were pending when it was disabled. The events from the time
// when it was disabled need a replay. The error is ErrNotFound when there is no such
// endpoint.
func (tx *Tx) EnableEndpoint(ctx context.Context, scope Scope, id string, now time.Time) error {
	return tx.changeEndpoint(ctx, scope, id, "webhook.enable", do(`
		UPDATE endpoints SET status = 'enabled', disabled_reason = '', failures = 0, failing_since = NULL, last_failure_at = NULL,
			rest_until = 0, concurrency = $4, missed_until = CASE WHEN status = 'disabled' THEN $5 ELSE missed_until END, updated_at = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status <> 'deleted'`,
		string(scope.Environment), scope.TaxpayerID, id, MaxConcurrency, micros(now)))
}

// DisableEndpoint disables an endpoint. New events get no delivery to it, and its
// pending deliveries wait until it is enabled. The error is ErrNotFound when there is
// no such enabled endpoint.
func (tx *Tx) DisableEndpoint(ctx context.Context, scope Scope, id, reason string, now time.Time) error {
	return tx.changeEndpoint(ctx, scope, id, "webhook.disable", do(`
		UPDATE endpoints SET status = 'disabled', disabled_reason = $4, missed_since = coalesce(missed_since, $5), missed_until = NULL, updated_at = $5
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status = 'enabled'`,
		string(scope.Environment), scope.TaxpayerID, id, reason, micros(now)))
}

// DeleteEndpoint removes the secrets of an endpoint, which gets no delivery from then
// on, and fails the first of its pending deliveries. Purge fails the others, so that a
// long backlog does not block other writers. The row stays, because the delivery log
// refers to it. The error is ErrNotFound when there is no such endpoint.
func (tx *Tx) DeleteEndpoint(ctx context.Context, scope Scope, id string, now time.Time) error {
	before, err := tx.Endpoint(ctx, scope, id)
	if err != nil {
		return err
	}
	err = tx.writeOne(ctx, "delete endpoint", ErrNotFound, do(`
		UPDATE endpoints SET status = 'deleted', secret = NULL, old_secret = NULL, old_until = NULL, updated_at = $4
		WHERE environment = $1 AND taxpayer_id = $2 AND id = $3 AND status <> 'deleted'`,
		string(scope.Environment), scope.TaxpayerID, id, micros(now)))
	if err != nil {
		return err
	}
	if _, err = tx.run(ctx, "close deliveries", closeDeliveries(scope, id, closeBatch)); err != nil {
		return err
	}
	after := before
	after.Status = "deleted"
	return tx.auditEndpoint(ctx, "webhook.delete", &before, after)
}
