package store

import "context"

// Page is a document as it was printed, once and for all.
type Page struct {
	Digest []byte // SHA-256 of PDF
	PDF    []byte
}

// Page reads the printed page of a document.
func (r reader) Page(ctx context.Context, scope Scope, documentID string) (Page, error) {
	var p Page
	err := r.q.QueryRowContext(ctx, `
		SELECT sha256, pdf FROM pages WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID).Scan(&p.Digest, &p.PDF)
	return p, r.d.wrap("read page", err)
}

// KeepPage stores a printed page unless there is one, and returns the one that
// is stored: of two that print at once the first stays.
func (s *Store) KeepPage(ctx context.Context, scope Scope, documentID string, p Page) (Page, error) {
	err := s.Update(ctx, func(tx *Tx) error {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO pages (document_id, environment, taxpayer_id, sha256, pdf, created_at)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			documentID, scope.Environment, scope.TaxpayerID, p.Digest, p.PDF, micros(s.now()))
		return tx.d.wrap("keep page", err)
	})
	if err != nil {
		return Page{}, err
	}
	return s.Page(ctx, scope, documentID)
}
