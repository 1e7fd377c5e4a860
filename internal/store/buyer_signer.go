package store

import (
	"context"
	"time"
)

// SignerBasis says why a signer is known to act for a buyer.
type SignerBasis string

// The reasons for which a signer is known.
const (
	// ByAcknowledgement: the signer signed an acknowledgement that came from the buyer's
	// registered address.
	ByAcknowledgement SignerBasis = "acknowledgement"
	// ByOperator: an operator has confirmed the signer.
	ByOperator SignerBasis = "operator"
)

// BuyerSigner is a person who is known to sign for a buyer of a taxpayer.
type BuyerSigner struct {
	Scope
	BuyerRNC   string
	Signer     string // as xmlsig.Signer identifies it
	Basis      SignerBasis
	DocumentID string // that the signer acknowledged; empty for ByOperator
	CreatedAt  time.Time
}

// object returns the name of a signer in the audit log.
func (s BuyerSigner) object() string { return "buyer:" + s.BuyerRNC }

// LearnBuyerSigner adds a signer, unless the signer is known already.
func (b *Batch) LearnBuyerSigner(s BuyerSigner) *Batch {
	return b.add(do(`
		INSERT INTO buyer_signers (environment, taxpayer_id, buyer_rnc, signer, basis, document_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT DO NOTHING`, s.args()...), nil)
}

func (s BuyerSigner) args() []any {
	return []any{string(s.Environment), s.TaxpayerID, s.BuyerRNC, s.Signer, string(s.Basis), s.DocumentID, micros(s.CreatedAt)}
}

// ConfirmBuyerSigner adds a signer that an operator has confirmed. A signer who is known
// by an acknowledgement becomes one whom the operator has confirmed. The error is
// ErrNotFound when there is no such taxpayer.
func (tx *Tx) ConfirmBuyerSigner(ctx context.Context, s BuyerSigner) error {
	if err := tx.lockTaxpayer(ctx, s.TaxpayerID); err != nil {
		return err
	}
	s.Basis, s.DocumentID = ByOperator, ""
	err := tx.exec(ctx, "confirm signer", `
		INSERT INTO buyer_signers (environment, taxpayer_id, buyer_rnc, signer, basis, document_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (environment, taxpayer_id, buyer_rnc, signer) DO UPDATE SET basis = excluded.basis, document_id = excluded.document_id`, s.args()...)
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{s.Scope, "buyer.confirm", s.object(), nil, map[string]any{"signer": s.Signer}})
}

// RemoveBuyerSigner removes a signer. The error is ErrNotFound when the signer is not
// known. A later acknowledgement of the signer adds it again.
func (tx *Tx) RemoveBuyerSigner(ctx context.Context, s BuyerSigner) error {
	err := tx.writeOne(ctx, "remove signer", ErrNotFound, do(`
		DELETE FROM buyer_signers WHERE environment = $1 AND taxpayer_id = $2 AND buyer_rnc = $3 AND signer = $4`,
		string(s.Environment), s.TaxpayerID, s.BuyerRNC, s.Signer))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{s.Scope, "buyer.remove", s.object(), map[string]any{"signer": s.Signer}, nil})
}

// IsBuyerSigner reports whether a signer is known to act for a buyer.
func (r reader) IsBuyerSigner(ctx context.Context, scope Scope, buyerRNC, signer string) (bool, error) {
	n, err := one(r.rows(ctx, "find signer", `
		SELECT count(*) FROM buyer_signers WHERE environment = $1 AND taxpayer_id = $2 AND buyer_rnc = $3 AND signer = $4`,
		scope.Environment, scope.TaxpayerID, buyerRNC, signer), only[int64])
	return n > 0, err
}

// BuyerSigners lists the signers of the buyers of all taxpayers, by buyer. Only the
// operator uses it.
func (r reader) BuyerSigners(ctx context.Context) ([]BuyerSigner, error) {
	return collect(r.rows(ctx, "list signers", `
		SELECT environment, taxpayer_id, buyer_rnc, signer, basis, document_id, created_at FROM buyer_signers
		ORDER BY environment, taxpayer_id, buyer_rnc, signer`), func(s *BuyerSigner) []any {
		return []any{&s.Environment, &s.TaxpayerID, &s.BuyerRNC, &s.Signer, &s.Basis, &s.DocumentID, instant(&s.CreatedAt)}
	})
}
