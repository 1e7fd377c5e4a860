package store

import (
	"context"
	"time"
)

// ReplacedNumber is a number that a document had, with what was signed under it. The tax
// authority never got it, and the document takes another number. Its row stays in the
// table issued, under a document id that no document has.
type ReplacedNumber struct {
	Issued // DocumentID is the document that had the number
	Reason string
	By     string // who replaced it
	At     time.Time
}

// ReplaceNumber takes the number away from a document, so that the document can take
// another one. What was signed with the number is kept, and the number is abandoned. The
// error is ErrNotFound when the document does not have the number any more.
func (tx *Tx) ReplaceNumber(ctx context.Context, n ReplacedNumber) error {
	err := tx.writeOne(ctx, "replace number", ErrNotFound, do(`
		UPDATE issued_documents SET document_id = $6, former_document_id = $5, replaced_reason = $7, replaced_by = $8, replaced_at = $9
		WHERE environment = $1 AND rnc = $2 AND encf = $3 AND taxpayer_id = $4 AND document_id = $5`,
		string(n.Environment), n.RNC, n.ENCF, n.TaxpayerID, n.DocumentID, NewID(), n.Reason, n.By, micros(n.At)))
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
	return tx.writeOne(ctx, "replace number", ErrNotFound, do(`
		UPDATE documents SET encf = NULL
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`, string(n.Environment), n.TaxpayerID, n.DocumentID))
}

// ReplacedNumbers lists the numbers that a document had before, the first one first.
func (r reader) ReplacedNumbers(ctx context.Context, scope Scope, documentID string) ([]ReplacedNumber, error) {
	all, err := collect(r.rows(ctx, "read replaced numbers", `
		SELECT replaced_reason, replaced_by, replaced_at, `+issuedHead+`, xml, summary FROM issued_documents
		WHERE former_document_id = $3 AND environment = $1 AND taxpayer_id = $2 ORDER BY replaced_at, encf`,
		scope.Environment, scope.TaxpayerID, documentID), func(n *ReplacedNumber) []any {
		return append([]any{&n.Reason, &n.By, instant(&n.At)}, n.columns()...)
	})
	for i := range all {
		all[i].DocumentID = documentID
	}
	return all, err
}
