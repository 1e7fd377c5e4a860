package store

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// DifferenceKind says what differs between an accepted document and what the tax
// authority shows under its number.
type DifferenceKind string

// The kinds of differences.
const (
	DifferenceNotFound     DifferenceKind = "not_found" // the authority shows no document
	DifferenceState        DifferenceKind = "state"
	DifferenceSecurityCode DifferenceKind = "security_code"
	DifferenceTotal        DifferenceKind = "total"
	DifferenceBuyer        DifferenceKind = "buyer"
)

// DifferenceKinds returns all kinds of differences.
func DifferenceKinds() []DifferenceKind {
	return []DifferenceKind{DifferenceNotFound, DifferenceState, DifferenceSecurityCode, DifferenceTotal, DifferenceBuyer}
}

// Difference is a difference between a document and the authority's answer about it. A
// document has at most one of each kind.
type Difference struct {
	Scope
	DocumentID   string
	Kind         DifferenceKind
	Ours, Theirs string
	FoundAt      time.Time
	SeenAt       time.Time // when the authority last showed it
	CheckAt      time.Time // when the document is compared again
	EndedAt      time.Time // when the authority no longer showed it; zero: it did the last time
}

// Cause says what the authority shows differently.
func (d Difference) Cause() cause.Cause {
	switch d.Kind {
	case DifferenceNotFound:
		return cause.New(cause.DifferenceNotFound)
	case DifferenceState:
		return cause.New(cause.DifferenceState, d.Theirs)
	case DifferenceSecurityCode:
		return cause.New(cause.DifferenceSecurityCode, d.Theirs, d.Ours)
	case DifferenceTotal:
		return cause.New(cause.DifferenceTotal, d.Theirs, d.Ours)
	case DifferenceBuyer:
		return cause.New(cause.DifferenceBuyer, d.Theirs, d.Ours)
	}
	return cause.New(cause.Text, d.Kind)
}

const differenceColumns = `kind, ours, theirs, found_at, seen_at, check_at, ended_at`

func (d *Difference) columns() []any {
	return []any{&d.Kind, &d.Ours, &d.Theirs, instant(&d.FoundAt), instant(&d.SeenAt), instant(&d.CheckAt), instant(&d.EndedAt)}
}

// DifferencesOf lists the differences of a document, also those that have ended.
func (r reader) DifferencesOf(ctx context.Context, scope Scope, documentID string) ([]Difference, error) {
	return collect(r.rows(ctx, "read differences", `
		SELECT `+differenceColumns+` FROM differences
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY kind`,
		scope.Environment, scope.TaxpayerID, documentID), func(d *Difference) []any {
		d.Scope, d.DocumentID = scope, documentID
		return d.columns()
	})
}

// SaveDifference stores a difference, and replaces the difference of the same kind.
func (tx *Tx) SaveDifference(ctx context.Context, d Difference) error {
	return tx.exec(ctx, "save difference", `
		INSERT INTO differences (document_id, environment, taxpayer_id, `+differenceColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (document_id, kind) DO UPDATE SET ours = excluded.ours, theirs = excluded.theirs, found_at = excluded.found_at,
			seen_at = excluded.seen_at, check_at = excluded.check_at, ended_at = excluded.ended_at`,
		d.DocumentID, d.Environment, d.TaxpayerID, d.Kind, d.Ours, d.Theirs, micros(d.FoundAt), micros(d.SeenAt), micros(d.CheckAt), optionalMicros(d.EndedAt))
}

// DifferentDocument returns the document with an open difference that is to be compared
// again first, if it is due at now and was found since the given moment. A difference that
// a clock stored which was ahead is due. The error is ErrNotFound when there is none.
func (r reader) DifferentDocument(ctx context.Context, env fiscal.Environment, since, now time.Time) (documentID string, err error) {
	for _, due := range []span{{0, micros(now)}, {farAhead(now, longestCheckPause) + 1, math.MaxInt64}} {
		documentID, err = one(r.rows(ctx, "find different document", `
			SELECT document_id FROM differences
			WHERE environment = $1 AND ended_at IS NULL AND check_at >= $2 AND check_at <= $3 AND found_at >= $4
			ORDER BY check_at LIMIT 1`, env, due.first, due.last, micros(since)), only[string])
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return documentID, err
}

// DifferentInvoice is an open difference and the invoice of its document.
type DifferentInvoice struct {
	Difference
	ExternalID string
	Status     fiscal.Status
}

// OpenDifferences lists the differences that have not ended, the oldest first. An empty
// field of the scope means all. Only the operator uses it.
func (r reader) OpenDifferences(ctx context.Context, within Scope) ([]DifferentInvoice, error) {
	return collect(r.rows(ctx, "list differences", `
		SELECT d.environment, d.taxpayer_id, d.document_id, i.external_id, i.status, `+qualified("d", differenceColumns)+`
		FROM differences d JOIN documents i ON i.document_id = d.document_id
		WHERE d.ended_at IS NULL
			AND (cast($1 AS text) = '' OR d.environment = $1) AND (cast($2 AS text) = '' OR d.taxpayer_id = $2)
		ORDER BY d.found_at, d.document_id, d.kind`, within.Environment, within.TaxpayerID), func(d *DifferentInvoice) []any {
		return append([]any{&d.Environment, &d.TaxpayerID, &d.DocumentID, &d.ExternalID, &d.Status}, d.columns()...)
	})
}
