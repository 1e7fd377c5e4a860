package store

import (
	"context"
	"time"
)

// NumberPresence is what the authority said about a number that was given up.
type NumberPresence string

// What the authority said: that it holds a document under the number, that it
// holds none, or nothing, because it cannot be asked in the environment.
const (
	NumberFound   NumberPresence = "found"
	NumberAbsent  NumberPresence = "absent"
	NumberUnknown NumberPresence = "unknown"
)

// AbandonedNumber is a number that was given up: it may have been used by documents that
// a restored database does not have. It is never issued again.
type AbandonedNumber struct {
	Scope
	RNC, ENCF string
	Presence  NumberPresence
	Detail    string
	At        time.Time
}

// AbandonNumbers adds numbers to the ledger as given up. Those that are there stay.
func (tx *Tx) AbandonNumbers(ctx context.Context, numbers []AbandonedNumber) error {
	for _, b := range numbers {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO burned (environment, rnc, encf, taxpayer_id, found, detail, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			b.Environment, b.RNC, b.ENCF, b.TaxpayerID, b.Presence, b.Detail, micros(b.At))
		if err != nil {
			return tx.d.wrap("burn number", err)
		}
	}
	return nil
}

// AbandonedNumbers lists the numbers of a taxpayer that were given up, from one to
// another, the lowest first.
func (r reader) AbandonedNumbers(ctx context.Context, scope Scope, rnc, from, to string) ([]AbandonedNumber, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT encf, found, detail, at FROM burned
		WHERE environment = $1 AND taxpayer_id = $2 AND rnc = $3 AND encf >= $4 AND encf <= $5 ORDER BY encf`,
		scope.Environment, scope.TaxpayerID, rnc, from, to)
	if err != nil {
		return nil, r.d.wrap("read burned numbers", err)
	}
	return collect(r.d, "read burned numbers", rows, func(row row) (AbandonedNumber, error) {
		b := AbandonedNumber{Scope: scope, RNC: rnc}
		var at int64
		err := row.Scan(&b.ENCF, &b.Presence, &b.Detail, &at)
		b.At = fromMicros(at)
		return b, err
	})
}
