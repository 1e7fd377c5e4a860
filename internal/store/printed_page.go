package store

import "context"

// PrintedPage is the printed form of a document. It never changes. Its table is pages when it
// is in letter format, and receipts when it is in another one.
type PrintedPage struct {
	Digest []byte // SHA-256 of PDF
	PDF    []byte
}

// LetterFormat is the name of the format of the pages in the table pages.
const LetterFormat = "letter"

// PrintedPage reads the letter page of a document. The error is ErrNotFound when it was not
// printed.
func (r reader) PrintedPage(ctx context.Context, scope Scope, documentID string) (PrintedPage, error) {
	var p PrintedPage
	err := r.q.QueryRowContext(ctx, `
		SELECT sha256, pdf FROM pages WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID).Scan(&p.Digest, &p.PDF)
	return p, r.d.wrap("read printed page", err)
}

// KeepPrintedPage stores the letter page of a document, unless it has one, and returns
// the stored page. When two nodes print at the same time, both get the first page.
func (s *Store) KeepPrintedPage(ctx context.Context, scope Scope, documentID string, p PrintedPage) (PrintedPage, error) {
	err := s.Update(ctx, func(tx *Tx) error {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO pages (document_id, environment, taxpayer_id, sha256, pdf, created_at)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			documentID, scope.Environment, scope.TaxpayerID, p.Digest, p.PDF, micros(s.Now()))
		return tx.d.wrap("keep printed page", err)
	})
	if err != nil {
		return PrintedPage{}, err
	}
	return s.PrintedPage(ctx, scope, documentID)
}

// PrintedReceipt reads the printed page of a document in another format than letter. The
// error is ErrNotFound when it was not printed in this format.
func (r reader) PrintedReceipt(ctx context.Context, scope Scope, documentID, format string) (PrintedPage, error) {
	var p PrintedPage
	err := r.q.QueryRowContext(ctx, `
		SELECT sha256, pdf FROM receipts WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND format = $4`,
		scope.Environment, scope.TaxpayerID, documentID, format).Scan(&p.Digest, &p.PDF)
	return p, r.d.wrap("read printed receipt", err)
}

// KeepPrintedReceipt is KeepPrintedPage for a format other than letter.
func (s *Store) KeepPrintedReceipt(ctx context.Context, scope Scope, documentID, format string, p PrintedPage) (PrintedPage, error) {
	err := s.Update(ctx, func(tx *Tx) error {
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO receipts (document_id, format, environment, taxpayer_id, sha256, pdf, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			documentID, format, scope.Environment, scope.TaxpayerID, p.Digest, p.PDF, micros(s.Now()))
		return tx.d.wrap("keep printed receipt", err)
	})
	if err != nil {
		return PrintedPage{}, err
	}
	return s.PrintedReceipt(ctx, scope, documentID, format)
}
