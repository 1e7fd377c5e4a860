package store

import (
	"context"
	"time"
)

// NumberPresence is the tax authority's answer about an abandoned number.
type NumberPresence string

// The answers: the tax authority has a document with the number, it has none, or the
// environment has no service that answers.
const (
	NumberFound   NumberPresence = "found"
	NumberAbsent  NumberPresence = "absent"
	NumberUnknown NumberPresence = "unknown"
)

// AbandonedNumber is a number that the service never issues again: a document that a
// restored database does not have may use it, or its document took another number.
type AbandonedNumber struct {
	Scope
	RNC, ENCF string
	Presence  NumberPresence
	Detail    string
	At        time.Time
}

// AbandonNumbers stores abandoned numbers. It does not change a number that is already
// abandoned.
func (tx *Tx) AbandonNumbers(ctx context.Context, numbers []AbandonedNumber) error {
	for _, b := range numbers {
		err := tx.exec(ctx, "abandon number", `
			INSERT INTO burned (environment, rnc, encf, taxpayer_id, found, detail, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			b.Environment, b.RNC, b.ENCF, b.TaxpayerID, b.Presence, b.Detail, micros(b.At))
		if err != nil {
			return err
		}
	}
	return nil
}

// AbandonedNumbers lists the abandoned numbers of a taxpayer between from and to, both
// included, the lowest first.
func (r reader) AbandonedNumbers(ctx context.Context, scope Scope, rnc, from, to string) ([]AbandonedNumber, error) {
	return collect(r.rows(ctx, "read abandoned numbers", `
		SELECT encf, found, detail, at FROM burned
		WHERE environment = $1 AND taxpayer_id = $2 AND rnc = $3 AND encf >= $4 AND encf <= $5 ORDER BY encf`,
		scope.Environment, scope.TaxpayerID, rnc, from, to), func(b *AbandonedNumber) []any {
		b.Scope, b.RNC = scope, rnc
		return []any{&b.ENCF, &b.Presence, &b.Detail, instant(&b.At)}
	})
}
