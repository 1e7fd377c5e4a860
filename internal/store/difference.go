package store

import (
	"context"
	"database/sql"
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

// scanDifference reads differenceColumns into d, and the columns before them into
// before.
func scanDifference(r row, d *Difference, before ...any) error {
	var found, seen, check int64
	var ended sql.NullInt64
	err := r.Scan(append(before, &d.Kind, &d.Ours, &d.Theirs, &found, &seen, &check, &ended)...)
	d.FoundAt, d.SeenAt, d.CheckAt, d.EndedAt = fromMicros(found), fromMicros(seen), fromMicros(check), fromOptionalMicros(ended)
	return err
}

// DifferencesOf lists the differences of a document, also those that have ended.
func (r reader) DifferencesOf(ctx context.Context, scope Scope, documentID string) ([]Difference, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+differenceColumns+` FROM differences
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY kind`,
		scope.Environment, scope.TaxpayerID, documentID)
	if err != nil {
		return nil, r.d.wrap("read differences", err)
	}
	return collect(r.d, "read differences", rows, func(row row) (Difference, error) {
		d := Difference{Scope: scope, DocumentID: documentID}
		err := scanDifference(row, &d)
		return d, err
	})
}

// SaveDifference stores a difference, and replaces the one of the same kind.
func (tx *Tx) SaveDifference(ctx context.Context, d Difference) error {
	_, err := tx.q.ExecContext(ctx, `
		INSERT INTO differences (document_id, environment, taxpayer_id, `+differenceColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (document_id, kind) DO UPDATE SET ours = excluded.ours, theirs = excluded.theirs, found_at = excluded.found_at,
			seen_at = excluded.seen_at, check_at = excluded.check_at, ended_at = excluded.ended_at`,
		d.DocumentID, d.Environment, d.TaxpayerID, d.Kind, d.Ours, d.Theirs, micros(d.FoundAt), micros(d.SeenAt), micros(d.CheckAt), optionalMicros(d.EndedAt))
	return tx.d.wrap("save difference", err)
}

// DifferentDocument returns the document with an open difference that is to be compared
// again first, if it is due at now and was found since the given moment. A difference that
// a clock stored which was ahead is due. The error is ErrNotFound when there is none.
func (r reader) DifferentDocument(ctx context.Context, env fiscal.Environment, since, now time.Time) (documentID string, err error) {
	for _, due := range []span{{0, micros(now)}, {farAhead(now, longestCheckPause) + 1, math.MaxInt64}} {
		err = r.q.QueryRowContext(ctx, `
			SELECT document_id FROM differences
			WHERE environment = $1 AND ended_at IS NULL AND check_at >= $2 AND check_at <= $3 AND found_at >= $4
			ORDER BY check_at LIMIT 1`, env, due.first, due.last, micros(since)).Scan(&documentID)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
	}
	return documentID, r.d.wrap("find different document", err)
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
	rows, err := r.q.QueryContext(ctx, `
		SELECT d.environment, d.taxpayer_id, d.document_id, i.external_id, i.status, `+qualified("d", differenceColumns)+`
		FROM differences d JOIN documents i ON i.document_id = d.document_id
		WHERE d.ended_at IS NULL
			AND (cast($1 AS text) = '' OR d.environment = $1) AND (cast($2 AS text) = '' OR d.taxpayer_id = $2)
		ORDER BY d.found_at, d.document_id, d.kind`, within.Environment, within.TaxpayerID)
	if err != nil {
		return nil, r.d.wrap("list differences", err)
	}
	return collect(r.d, "list differences", rows, func(row row) (one DifferentInvoice, err error) {
		err = scanDifference(row, &one.Difference, &one.Environment, &one.TaxpayerID, &one.DocumentID, &one.ExternalID, &one.Status)
		return one, err
	})
}
