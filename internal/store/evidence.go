package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Evidence is one fact about a document at the tax authority. Body is its content as
// JSON; package evidence reads it. Equal evidence is stored once.
type Evidence struct {
	Scope
	DocumentID string
	ID         string
	At         time.Time
	Kind       string
	TrackID    string
	Verdict    fiscal.Verdict
	Body       string
	Digest     []byte
	Raw        []byte // the unchanged answer; nil: none
}

// EvidenceOf lists the evidence of a document, the oldest first, without Raw.
func (r reader) EvidenceOf(ctx context.Context, scope Scope, documentID string) ([]Evidence, error) {
	return collect(r.rows(ctx, "read evidence", `
		SELECT id, at, kind, track_id, verdict, body, digest FROM evidence
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY at, id`,
		scope.Environment, scope.TaxpayerID, documentID), func(e *Evidence) []any {
		e.Scope, e.DocumentID = scope, documentID
		return []any{&e.ID, instant(&e.At), &e.Kind, &e.TrackID, &e.Verdict, &e.Body, &e.Digest}
	})
}

// AddEvidence adds evidence, unless the document has the same evidence already.
func (b *Batch) AddEvidence(e Evidence) *Batch {
	return b.add(do(`
		INSERT INTO evidence (document_id, id, environment, taxpayer_id, at, kind, track_id, verdict, body, digest, raw)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT DO NOTHING`,
		e.DocumentID, e.ID, string(e.Environment), e.TaxpayerID, micros(e.At), e.Kind, e.TrackID, int64(e.Verdict), e.Body, e.Digest, optionalBytes(e.Raw)), nil)
}
