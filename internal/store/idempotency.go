package store

import (
	"context"
	"time"
)

// StoredReply is the stored answer to a request that created an object. A repetition of the
// request gets the same bytes, for as long as the object exists.
type StoredReply struct {
	Scope
	Operation   string
	Key         string
	Fingerprint []byte // of the canonical request
	RawDigest   []byte // of the bytes that the client sent
	ObjectID    string
	HTTPStatus  int
	Location    string
	RequestID   string
	CreatedAt   time.Time
	Body        []byte
}

// rememberReply adds a row when the key is new, and changes none when the key exists.
// It waits for a running transaction that adds the same key.
func rememberReply(a StoredReply) statement {
	return do(`
		INSERT INTO idempotency (environment, taxpayer_id, operation, key, fingerprint, raw_digest, object_id,
			http_status, location, request_id, created_at, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (environment, taxpayer_id, operation, key) DO NOTHING`,
		string(a.Environment), a.TaxpayerID, a.Operation, a.Key, a.Fingerprint, a.RawDigest, a.ObjectID,
		a.HTTPStatus, a.Location, a.RequestID, micros(a.CreatedAt), a.Body)
}

// StoredReply reads the stored answer of a key. The error is ErrNotFound when the key is new.
func (r reader) StoredReply(ctx context.Context, scope Scope, operation, key string) (StoredReply, error) {
	return one(r.rows(ctx, "read answer", `
		SELECT fingerprint, raw_digest, object_id, http_status, location, request_id, created_at, body
		FROM idempotency
		WHERE environment = $1 AND taxpayer_id = $2 AND operation = $3 AND key = $4`,
		scope.Environment, scope.TaxpayerID, operation, key), func(a *StoredReply) []any {
		a.Scope, a.Operation, a.Key = scope, operation, key
		return []any{&a.Fingerprint, &a.RawDigest, &a.ObjectID, &a.HTTPStatus, &a.Location, &a.RequestID, instant(&a.CreatedAt), &a.Body}
	})
}
