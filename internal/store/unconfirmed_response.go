package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// MaxUnconfirmedResponses is how many responses of unknown signers a document has at
// most. The table refuses more.
const MaxUnconfirmedResponses = 4

// UnconfirmedResponse is a commercial response to a document whose signer is not known to
// act for the buyer.
type UnconfirmedResponse struct {
	Scope
	DocumentID string
	Number     int64 // from 1 to MaxUnconfirmedResponses
	BuyerRNC   string
	Signer     string
	Accepted   bool
	Reason     string
	At         time.Time
	XML        []byte
}

const unconfirmedColumns = `environment, taxpayer_id, document_id, number, buyer_rnc, signer, accepted, reason, at, xml`

func (u *UnconfirmedResponse) columns() []any {
	return []any{&u.Environment, &u.TaxpayerID, &u.DocumentID, &u.Number, &u.BuyerRNC, &u.Signer, &u.Accepted, &u.Reason, instant(&u.At), &u.XML}
}

// UnconfirmedResponses lists the responses of unknown signers to a document, the oldest
// first.
func (r reader) UnconfirmedResponses(ctx context.Context, scope Scope, documentID string) ([]UnconfirmedResponse, error) {
	return collect(r.rows(ctx, "read responses", `
		SELECT `+unconfirmedColumns+` FROM unconfirmed_responses
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 ORDER BY at, number`,
		scope.Environment, scope.TaxpayerID, documentID), (*UnconfirmedResponse).columns)
}

// AddUnconfirmedResponse adds a response under a number that the caller has found free.
// Commit and Do return ErrInvoiceChanged when another transaction has taken the number, or
// added the same response of the signer.
func (b *Batch) AddUnconfirmedResponse(u UnconfirmedResponse) *Batch {
	return b.add(do(`
		INSERT INTO unconfirmed_responses (`+unconfirmedColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT DO NOTHING`,
		string(u.Environment), u.TaxpayerID, u.DocumentID, u.Number, u.BuyerRNC, u.Signer, oneIf(u.Accepted), u.Reason, micros(u.At), u.XML), ErrInvoiceChanged)
}

// TakeUnconfirmedResponse deletes a response, and reports whether it was still there. The
// caller applies the response in the same transaction, so that it has its effect once.
func (tx *Tx) TakeUnconfirmedResponse(ctx context.Context, u UnconfirmedResponse) (bool, error) {
	return tx.write(ctx, "take response", do(`
		DELETE FROM unconfirmed_responses
		WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND number = $4 AND signer = $5`,
		string(u.Environment), u.TaxpayerID, u.DocumentID, u.Number, u.Signer))
}

// ConfirmedResponses lists the responses of all taxpayers of an environment whose signer
// is known by now, at most limit, the oldest first.
func (r reader) ConfirmedResponses(ctx context.Context, env fiscal.Environment, limit int) ([]UnconfirmedResponse, error) {
	return collect(r.rows(ctx, "read confirmed responses", `
		SELECT u.environment, u.taxpayer_id, u.document_id, u.number, u.buyer_rnc, u.signer, u.accepted, u.reason, u.at, u.xml
		FROM unconfirmed_responses u JOIN buyer_signers s
			ON s.environment = u.environment AND s.taxpayer_id = u.taxpayer_id AND s.buyer_rnc = u.buyer_rnc AND s.signer = u.signer
		WHERE u.environment = $1 ORDER BY u.at, u.document_id, u.number LIMIT $2`, env, limit), (*UnconfirmedResponse).columns)
}

// UnknownSigner is a signer of responses who is not known to act for the buyer.
type UnknownSigner struct {
	Scope
	BuyerRNC  string
	Signer    string
	Responses int64     // how many responses of the signer are kept
	Since     time.Time // of the oldest
}

// UnknownSigners lists the signers of unconfirmed responses of all taxpayers, by buyer.
// Only the operator uses it.
func (r reader) UnknownSigners(ctx context.Context) ([]UnknownSigner, error) {
	return collect(r.rows(ctx, "list unknown signers", `
		SELECT environment, taxpayer_id, buyer_rnc, signer, count(*), min(at) FROM unconfirmed_responses
		GROUP BY environment, taxpayer_id, buyer_rnc, signer ORDER BY environment, taxpayer_id, buyer_rnc, signer`), func(s *UnknownSigner) []any {
		return []any{&s.Environment, &s.TaxpayerID, &s.BuyerRNC, &s.Signer, &s.Responses, instant(&s.Since)}
	})
}
