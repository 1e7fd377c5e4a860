package store

import "context"

// PrintedPage is the printed form of a document. It never changes. Its table is pages when it
// is in letter format, and receipts when it is in another one.
type PrintedPage struct {
	Digest []byte // SHA-256 of PDF
	PDF    []byte
}

func (p *PrintedPage) columns() []any { return []any{&p.Digest, &p.PDF} }

// LetterFormat is the name of the format of the pages in the table pages.
const LetterFormat = "letter"

// PrintedPage reads the letter page of a document. The error is ErrNotFound when it was not
// printed.
func (r reader) PrintedPage(ctx context.Context, scope Scope, documentID string) (PrintedPage, error) {
	return one(r.rows(ctx, "read printed page", `
		SELECT sha256, pdf FROM pages WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3`,
		scope.Environment, scope.TaxpayerID, documentID), (*PrintedPage).columns)
}

// KeepPrintedPage stores the letter page of a document, unless it has one, and returns
// the stored page. When two nodes print at the same time, both get the first page.
func (s *Store) KeepPrintedPage(ctx context.Context, scope Scope, documentID string, p PrintedPage) (PrintedPage, error) {
	err := s.Update(ctx, func(tx *Tx) error {
		return tx.exec(ctx, "keep printed page", `
			INSERT INTO pages (document_id, environment, taxpayer_id, sha256, pdf, created_at)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			documentID, scope.Environment, scope.TaxpayerID, p.Digest, p.PDF, micros(s.Now()))
	})
	if err != nil {
		return PrintedPage{}, err
	}
	return s.PrintedPage(ctx, scope, documentID)
}

// PrintedReceipt reads the printed page of a document in another format than letter. The
// error is ErrNotFound when it was not printed in this format.
func (r reader) PrintedReceipt(ctx context.Context, scope Scope, documentID, format string) (PrintedPage, error) {
	return one(r.rows(ctx, "read printed receipt", `
		SELECT sha256, pdf FROM receipts WHERE environment = $1 AND taxpayer_id = $2 AND document_id = $3 AND format = $4`,
		scope.Environment, scope.TaxpayerID, documentID, format), (*PrintedPage).columns)
}

// KeepPrintedReceipt is KeepPrintedPage for a format other than letter.
func (s *Store) KeepPrintedReceipt(ctx context.Context, scope Scope, documentID, format string, p PrintedPage) (PrintedPage, error) {
	err := s.Update(ctx, func(tx *Tx) error {
		return tx.exec(ctx, "keep printed receipt", `
			INSERT INTO receipts (document_id, format, environment, taxpayer_id, sha256, pdf, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			documentID, format, scope.Environment, scope.TaxpayerID, p.Digest, p.PDF, micros(s.Now()))
	})
	if err != nil {
		return PrintedPage{}, err
	}
	return s.PrintedReceipt(ctx, scope, documentID, format)
}
