package store

import (
	"context"
	"time"
)

// ReplacedNumber is a number that a document had, with what was signed under it. The tax
// authority never got it, and the document takes another number. Its table is reissued.
type ReplacedNumber struct {
	Issued
	Reason string
	By     string // who replaced it
	At     time.Time
}

const reissuedColumns = `environment, rnc, encf, taxpayer_id, document_id, sequence_id, certificate, security_code, buyer_rnc,
	signed_at, created_at, xml_sha256, sent_sha256, xml, summary`

// ReplaceNumber takes the number away from a document, so that the document can take
// another one. What was signed with the number is kept, and the number is abandoned. The
// error is ErrNotFound when the document does not have the number any more.
//
// A trigger of the table reissued deletes the row of issued: nobody else may.
func (tx *Tx) ReplaceNumber(ctx context.Context, n ReplacedNumber) error {
	key := []any{string(n.Environment), n.RNC, n.ENCF, n.TaxpayerID, n.DocumentID}
	err := tx.changeOne(ctx, "replace number", ErrNotFound, statement{`
		INSERT INTO reissued (` + reissuedColumns + `, reason, replaced_by, replaced_at)
		SELECT ` + reissuedColumns + `, cast($6 AS text), cast($7 AS text), cast($8 AS bigint) FROM issued
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND taxpayer_id = $4 AND document_id = $5`,
		append(key[:len(key):len(key)], n.Reason, n.By, micros(n.At))})
	if err != nil {
		return err
	}
	err = tx.AbandonNumbers(ctx, []AbandonedNumber{{
		Scope: n.Scope, RNC: n.RNC, ENCF: n.ENCF, Presence: NumberAbsent, At: n.At,
		Detail: "replaced before it was sent; document " + n.DocumentID,
	}})
	if err != nil {
		return err
	}
	return tx.changeOne(ctx, "replace number", ErrNotFound, statement{`
		UPDATE invoices SET encf = NULL
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`, []any{string(n.Environment), n.TaxpayerID, n.DocumentID}})
}

// ReplacedNumbers lists the numbers that a document had before, the first one first.
func (r reader) ReplacedNumbers(ctx context.Context, scope Scope, documentID string) ([]ReplacedNumber, error) {
	rows, err := r.q.QueryContext(ctx, `
		SELECT `+reissuedColumns+`, reason, replaced_by, replaced_at FROM reissued
		WHERE document_id = $3 AND environment = $1 AND taxpayer_id = $2 ORDER BY replaced_at, encf`,
		scope.Environment, scope.TaxpayerID, documentID)
	if err != nil {
		return nil, r.d.wrap("read replaced numbers", err)
	}
	return collect(r.d, "read replaced numbers", rows, func(row row) (ReplacedNumber, error) {
		n := ReplacedNumber{Issued: Issued{State: NumberIssued}}
		var signed, created, at int64
		err := row.Scan(
			&n.Environment, &n.RNC, &n.ENCF, &n.TaxpayerID, &n.DocumentID, &n.NumberRangeID, &n.Certificate, &n.SecurityCode, &n.BuyerRNC,
			&signed, &created, &n.XMLDigest, &n.SentDigest, (*storedText)(&n.XML), (*storedText)(&n.Summary), &n.Reason, &n.By, &at)
		n.SignedAt, n.CreatedAt, n.At, n.Summarized = fromMicros(signed), fromMicros(created), fromMicros(at), n.Summary != nil
		return n, err
	})
}
